// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_

#include <cstdint>
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
#include "tensorflow_staging/core/producers/region_runs.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/run_outcomes.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/runtime/staged_run_threads.h"
#include "tensorflow_staging/core/sources/stage.h"
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
class PreparedRuns : public RegionRuns {
 public:
  PreparedRuns() = default;

  // Says which runs there are: those of `options` in `session`, which must
  // outlive all later calls.
  Status Describe(Session* session, const PrefetchRunnerOptions& options);

  // Prepares all runs but those of the producers. After an error, Release
  // releases the runs that were prepared.
  Status PrepareControlOps();

  // Prepares the runs of a producer of fetch_ops[source]. In a large graph this
  // takes as long as a session's first step takes to begin, so each producer
  // does it in its own thread, while the session prepares the step.
  Status PrepareProducer(int source) override;

  // Opens the buffer.
  Status Resume();

  // Wakes the puts that wait for room in the buffer, and the runs that wait for
  // a change of their source.
  Status Cancel();

  // Returns UNIMPLEMENTED if the graph of the stage has no op for that: an earlier
  // version has written it.
  Status ReadStats(BufferStats* stats) override;

  core::RefCountPtr<Stage> FindStage() const override TF_LOCKS_EXCLUDED(mu_);
  // Producers of one op have one source.
  ProducerId IdOf(int source, uint64_t number) const override {
    return {reinterpret_cast<std::uintptr_t>(producer_of_[source]), number};
  }
  Status Run(int source, const std::shared_ptr<StagedRun>& run,
             bool* has_put) override;
  RunOutcome OutcomeOf(const Status& error) const override {
    return staging::OutcomeOf(*options_, error);
  }
  Status Close(int source, uint64_t number, const Status& cause) override;

  // Releases the callables.
  void Release();

  // Ends the threads that only staged runs used, except those that are still
  // in an op, for example in an iterator's function that runs ahead: they end
  // after it.
  void RetireThreads();

 private:
  // The first of the threads that need it prepares it.
  struct Callable {
    CallableOptions options;
    // The threads of its runs, unless the run options choose others.
    std::optional<StagedRunThreads> threads;
    absl::once_flag once;
    Status status;
    Session::CallableHandle handle = 0;
  };

  void DescribeControlOps();
  Status DescribeProducers();
  Status Prepare(Callable* callable);
  bool HasFeeds() const { return feeds_.options.fetch_size() > 0; }
  // Runs a callable that has been prepared.
  Status Call(Callable* callable, const std::vector<Tensor>& feeds,
              std::vector<Tensor>* fetches, StagedCall call = {});
  // Runs one that has no fetches.
  Status RunOp(Callable* callable, const std::vector<Tensor>& feeds);

  Session* session_ = nullptr;
  const PrefetchRunnerOptions* options_ = nullptr;
  mutable mutex mu_;
  // All handles, to be released.
  std::vector<Session::CallableHandle> handles_ TF_GUARDED_BY(mu_);
  Callable resume_;
  Callable cancel_;
  Callable close_;
  // Few programs ask for statistics, so the first one that does prepares them.
  Callable stats_;
  // Fetches the values of named_feed_input_tensors, if there are any.
  Callable feeds_;
  // The buffer, if the session is a local one. On a server, the worker knows
  // its staged runs (runtime/worker_runs.h).
  core::WeakPtr<Stage> stage_ TF_GUARDED_BY(mu_);
  // By op. A producer is fed the values that `feeds_` fetches.
  std::map<std::string, Callable> producers_;
  // By entry of fetch_ops.
  std::vector<Callable*> producer_of_;

  TF_DISALLOW_COPY_AND_ASSIGN(PreparedRuns);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PREPARED_RUNS_H_
