// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runtime/staged_run_threads.h"
#include "tensorflow_staging/core/sources/source_reader.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

// The runs that a runner executes in a session, prepared once as callables: the
// session looks up a callable by a number instead of by the names of nodes.
//
// A run fails with CANCELLED if the session has been closed, whether it is a
// local session or one of a server.
//
// Staged runs leave the session's inter-op threads to the step if they may call
// Python (staged_run_threads.h), unless the run options of the stage choose
// other threads.
//
// Call Describe first. It and Release must not run concurrently with any
// method, PrepareControlOps with any but PrepareProducer, nor RetireThreads
// with a run of a producer; the other methods may run concurrently with each
// other.
class PreparedRuns {
 public:
  PreparedRuns() = default;

  // Says which runs there are: those of `options` in `session`, which must
  // outlive all later calls.
  Status Describe(Session* session, const PrefetchRunnerOptions& options);

  // Prepares all runs but those of the producers. After an error, Release
  // releases the runs that were prepared.
  Status PrepareControlOps();

  // Prepares the runs of producer `index` (an index into fetch_ops). In a large
  // graph this takes as long as a session's first step takes to begin, so each
  // producer does it in its own thread, while the session prepares the step.
  Status PrepareProducer(int index);

  // Opens the buffer.
  Status Resume();

  // Wakes the puts that wait for room in the buffer, and the runs that wait for
  // a change of their source.
  Status Cancel() const;

  // Closes the buffer with the cause that ended the stage; OK at the end of the
  // data.
  Status Close(const Status& cause) const;

  // Reads the statistics of the buffer. Returns UNIMPLEMENTED if the graph of
  // the stage has no op for that: an earlier version has written it.
  Status ReadStats(BufferStats* stats);

  // Runs the region once, as producer `index`, which must have been prepared,
  // after waiting until the stage admits the run. Sets `*result` to what came of
  // it.
  enum class Result {
    kRecord,    // It put a record.
    kNoRecord,  // It succeeded without one.
    kFailed,    // It failed with the returned error.
    kStale,     // It failed because an iterator has changed: run it again.
    kEnded,     // The stage has ended, and no change can open it.
  };
  // Sets `*micros` to how long the region ran, with the put's wait for room but
  // without the wait for the stage.
  Status ProduceRecord(int index, Result* result, int64_t* micros);

  // Whether a run waits for its stage before it begins.
  bool AwaitsStage() const { return FindStage() != nullptr; }

  // Releases the callables.
  void Release();

  // Ends the threads that only staged runs used, except those that are still
  // in an op, for example in an iterator's function that runs ahead: they end
  // after it.
  void RetireThreads();

 private:
  using Handle = Session::CallableHandle;

  struct Callable {
    CallableOptions options;
    Handle handle = 0;
  };

  // A callable that the first of the threads that need it prepares.
  struct SharedCallable : Callable {
    // The threads of its runs, unless the run options choose others.
    std::optional<StagedRunThreads> threads;
    absl::once_flag once;
    Status status;
  };

  void DescribeControlOps(const PrefetchRunnerOptions& options);
  Status DescribeProducers(const PrefetchRunnerOptions& options);
  Status Prepare(SharedCallable* callable);
  Status Prepare(Callable* callable);
  // Runs a callable that has been prepared.
  Status Run(SharedCallable* callable, const std::vector<Tensor>& feeds,
             std::vector<Tensor>* fetches);
  bool HasFeeds() const { return feeds_.options.fetch_size() > 0; }
  core::RefCountPtr<SourceReader> FindStage() const TF_LOCKS_EXCLUDED(mu_);
  // Runs the region as `run`, which is null in a distributed session.
  Status RunRegion(SharedCallable* producer,
                   const std::shared_ptr<StagedRun>& run, bool* has_put);
  Status Run(Handle handle, const std::vector<Tensor>& feeds,
             std::vector<Tensor>* fetches) const;
  // Runs a callable that has no fetches.
  Status RunOp(Handle handle, const std::vector<Tensor>& feeds) const;

  Session* session_ = nullptr;
  mutable mutex mu_;
  // All handles, to be released.
  std::vector<Handle> handles_ TF_GUARDED_BY(mu_);
  Callable resume_;
  Callable cancel_;
  Callable close_;
  SharedCallable stats_;
  // Fetches the values of named_feed_input_tensors, if there are any.
  SharedCallable feeds_;
  // The buffer, if the session is a local one. On a server, the worker knows
  // its staged runs (runtime/worker_runs.h).
  core::WeakPtr<SourceReader> stage_ TF_GUARDED_BY(mu_);
  // By op. A producer is fed the values that `feeds_` fetches.
  std::map<std::string, SharedCallable> producers_;
  // By entry of fetch_ops.
  std::vector<SharedCallable*> producer_of_;

  TF_DISALLOW_COPY_AND_ASSIGN(PreparedRuns);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_
