// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_CALL_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

class StagedRunThreads;

// What a runner tells the runtime of a session's run. Session::RunCallable() has
// no argument for it, so the code of ours far below asks for the call of its
// thread.
struct StagedCall {
  // What the run reads and puts. Null if it computes no region.
  std::shared_ptr<StagedRun> run;

  // On which threads a local session computes it (staged_run_threads.h). Null
  // for those of the session.
  StagedRunThreads* threads = nullptr;

  // How long a distributed session waits for it, which would otherwise give up
  // after its operation_timeout_in_ms, whatever the options of the callable
  // say. 0 leaves it to the session.
  int64_t timeout_millis = 0;

  // Whether it may compute in the calling thread, which would otherwise only
  // wait for it. To hand a small run from thread to thread costs more than to
  // compute it, and on a server more than all else of it (worker_runs.h).
  bool runs_in_caller = false;

  // Whether it may also wait there, in an iterator's kernel, for its record
  // (ReadsInCaller). Known once a local session begins it.
  bool reads_in_caller = false;
  // The run that has been taken from `run`.
  const StagedRun* taken = nullptr;

  // What tells the ops of the run that they belong to `run`, where no hook of the
  // runtime does (BeginStagedRun).
  std::shared_ptr<ScopedStagedRun> begun;
};

// The runs that the calling thread begins in the lifetime of this object belong
// to a call of a runner. Only the first of them computes its `run` on its
// `threads`: a session that an op of the region runs in the same thread is
// another run.
//
// Must live on the stack of one thread. Scopes nest.
class ScopedStagedCall {
 public:
  explicit ScopedStagedCall(StagedCall call);

 private:
  StagedCall call_;
  const ScopedThreadValue<StagedCall*> current_;
};

// The functions below ask for the calling thread's innermost scope.

// Returns whether a run waits, when it ends, until the queue of each GPU that it
// used is empty, also of what other runs have queued there, such as a step. A
// staged run returns when the host has done its part:
// - It hands a record to the step. If the Take is on the device of the Put,
//   whatever uses a tensor of the record there is queued behind the kernels
//   that compute it, and TensorFlow's copies from the device wait for them. If
//   it is on another stream, the Put waits for these kernels
//   (records/record_loan.h).
// - The tensors of a record in host memory, and what a run fetches, are
//   complete when their ops have ended.
// - A GPU's memory that the run frees is used again in the order of its queue.
// - A kernel that fails in the queue fails the step, which waits for the queue.
//
// A run that traces devices does wait, in any case: its trace would lack the
// kernels that are still queued.
bool SyncOnFinish(const RunOptions& options);

// Returns the timeout of a distributed session's callable, in milliseconds;
// `operation_timeout_in_ms`, the session's own, if no scope has one.
int64_t CallableTimeout(int64_t operation_timeout_in_ms);

bool RunsInCaller();

// Returns a runner that runs closures at once where RunsInCaller(), and schedules
// all others on `pool`. All kernels that the calling thread begins compute one
// after the other, so this is for graphs that only move records (region_ops.h).
Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool);

// The run that the calling thread begins waits for one record at most, so that no
// other op of it is held up while the thread waits.
void AllowReadInCaller();

// Calls `read`, which may wait for a record, and returns true, if `ctx` belongs to a
// run that may wait in the calling thread. There, a read costs no switch to the
// kernel's own thread and back. Nothing else of the run has anything to do meanwhile,
// its session cancels it as it does in any thread, and a run with a deadline, which
// its caller has to watch, does not wait here.
//
// What `read` runs, such as the functions of a dataset, does so as it would in the
// kernel's own thread.
bool ReadInCaller(OpKernelContext* ctx, absl::FunctionRef<void()> read);

// Return what the run that the thread begins belongs to, which the next run
// does not; null if it is not staged.
std::shared_ptr<StagedRun> TakeStagedRun();
StagedRunThreads* TakeStagedRunThreads();

// Does what the runtime does in the fork: what `cancellation` cancels belongs to that
// run until the scope ends.
void BeginStagedRun(const CancellationManager* cancellation);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_STAGED_CALL_H_
