// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUNS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUNS_H_

#include <functional>
#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/lib/core/threadpool_interface.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/worker.pb.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools.h"

namespace tensorflow {
namespace staging {

// How a worker of a distributed session runs its part of a stage, or of another
// run that asks for a stage thread pool.
//
// A worker has one pool of inter-op threads for all runs of all sessions. A run
// that asks for a stage thread pool has that of its session. Another run of a
// graph with a Put gets RegionThreads if it may call Python, so that its runs
// do not wait in the pool that the steps need; if it only moves records, a run
// that a producer in this process begins stays in the producer's thread. And
// like the staged runs of a local session, its runs do not wait until their
// GPUs are idle (runtime/staged_call.h).
//
// The producers are in the client's process, so the worker knows a stage's
// graph by its Put: what a region computes on further workers runs as a step
// does.
//
// `item` identifies a registered graph. Thread-safe.

// Notes that `item` is `graph`, with all that its functions call, of the
// session `session_handle`, whose configuration is `config`, on `devices`, which
// must live until ForgetWorkerGraph.
//
// Returns INVALID_ARGUMENT if the fields of the stage thread pools are
// malformed.
Status NoteWorkerGraph(const void* item, const std::string& session_handle,
                       const ConfigProto& config, const Graph& graph,
                       const DeviceMgr& devices);

// Forgets `item`, whose runs have all ended.
void ForgetWorkerGraph(const void* item);

// Marks the time in which the calling thread begins a run, which is when it can
// compute it.
//
// Later, the calling thread meets closures of the run only if it cancels the
// run, which the runtime of a server does with a lock that the end of the run
// needs. A run must not end there.
//
// Must live on the stack of one thread. Scopes nest.
class ScopedRunBegin {
 public:
  ScopedRunBegin();

 private:
  const ScopedThreadValue<bool> begins_run_;
};

// Returns RunnerInCaller(pool) of staged_call.h for the time in which the thread
// begins a run; from then on, the runner schedules all closures on `pool`.
Executor::Args::Runner RunnerInBeginner(thread::ThreadPool* pool);

// Finds the stage thread pool that `options` choose for a run of `item`, which
// the calling thread begins in the lifetime of this object. Lets `*done`, which
// is called when the run has ended, hold the pool until then. If the run was
// cancelled, its session then releases the pool. The run may compute in the
// calling thread only within this scope.
//
// A run of a graph with a Put is a staged run until `*done` is called
// (sources/staged_run.h). Its stage may let it fail because it has to be repeated,
// which the runner knows by the error (StaleRunError).
//
// Must live on the stack of one thread. Scopes nest.
class ScopedWorkerRun {
 public:
  ScopedWorkerRun(const void* item, const ExecutorOpts& options,
                  const CancellationManager* cancellation,
                  std::function<void(const Status&)>* done);

  // Why the run must not begin: it cannot have the pool that it asks for.
  const Status& status() const { return status_; }

 private:
  std::shared_ptr<StageThreadPools> pools_;
  Status status_;
  const ScopedThreadValue<const std::shared_ptr<StageThreadPools>*> current_;
  const ScopedRunBegin begin_;
};

struct WorkerRun {
  // Whether this is a staged run.
  bool is_staged = false;
  // Runs the ops: on a stage thread pool, on up to one thread more than the
  // worker's pool has, or in the calling thread. Null if they belong on the
  // worker's pool.
  Executor::Args::Runner runner;
  // Shares the work of one op. Null if the device's own threads do.
  thread::ThreadPoolInterface* intra_op_threadpool = nullptr;
};

// Returns how to run `item` in the calling thread's ScopedWorkerRun. The worker
// would use `pool`, which must live as long as the process: an iterator keeps
// the runner, also after the session and its pools have ended.
WorkerRun WorkerRunOf(const void* item, thread::ThreadPool* pool);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUNS_H_
