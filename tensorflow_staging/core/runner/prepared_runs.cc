// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prepared_runs.h"

#include <chrono>  // NOLINT
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/runtime/callable_timeout.h"
#include "tensorflow_staging/core/runtime/run_in_caller.h"
#include "tensorflow_staging/core/runtime/sync_on_finish.h"
#include "tensorflow_staging/core/sources/resumed_stage.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns whether a run failed because the program has closed its session of a
// server. Such a session knows no difference between "closed" and "not yet
// created"; but it was open when the runs were prepared.
bool IsSessionClosed(const Status& status) {
  return errors::IsInvalidArgument(status) &&
         absl::StartsWith(status.message(), "A session is not created yet");
}

// Returns whether the server did not begin a run, because it does not know the
// session or has closed it. Either the program closed the session while the run
// was on its way, or the session was lost.
bool IsUnknownToServer(const Status& status) {
  return (errors::IsAborted(status) &&
          absl::StartsWith(status.message(), "Session ") &&
          absl::StrContains(status.message(), " is not found.")) ||
         (errors::IsFailedPrecondition(status) &&
          absl::StartsWith(status.message(), "Session is closed."));
}

// Returns whether what a run with `options` should have fetched is dead.
bool IsDeadFetch(const CallableOptions& options, const Status& status,
                 const std::vector<Tensor>& fetched) {
  if (options.fetch_size() == 0) return false;
  // A local session fetches an empty tensor of another type, and a session of a
  // server reports an error.
  if (status.ok()) return fetched[0].dtype() != DT_BOOL;
  return absl::StrContains(status.message(), options.fetch(0)) &&
         absl::StrContains(status.message(), "was not valid");
}

Status UsesSessionThreads(const RunOptions& options, bool* uses) {
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(options, &fields));
  *uses = !fields.use_stage_subgraph_thread_pool() &&
          options.inter_op_thread_pool() == 0 &&
          !options.experimental().use_run_handler_pool();
  return OkStatus();
}

}  // namespace

Status PreparedRuns::Describe(Session* session,
                              const PrefetchRunnerOptions& options) {
  session_ = session;
  DescribeControlOps(options);
  return DescribeProducers(options);
}

void PreparedRuns::DescribeControlOps(const PrefetchRunnerOptions& options) {
  // The control ops never wait. They must work even while code that cannot be
  // cancelled occupies every thread of the session, so they run in the thread
  // that calls them.
  CallableOptions control;
  control.mutable_run_options()->set_inter_op_thread_pool(-1);
  control.mutable_run_options()->set_timeout_in_ms(
      options.run_options().timeout_in_ms());

  resume_.options = control;
  resume_.options.add_target(options.resume_op());

  cancel_.options = control;
  cancel_.options.add_target(options.cancel_op());

  close_.options = control;
  close_.options.add_feed(options.error_code_tensor());
  close_.options.add_feed(options.error_message_tensor());
  close_.options.add_target(options.close_op());

  stats_.options = control;
  if (!options.stats_tensor().empty()) {
    stats_.options.add_fetch(options.stats_tensor());
  }
}

Status PreparedRuns::PrepareControlOps() {
  // Few programs ask for statistics, so the first one that does prepares them.
  for (Callable* callable : {&resume_, &cancel_, &close_}) {
    TF_RETURN_IF_ERROR(Prepare(callable));
  }
  return OkStatus();
}

Status PreparedRuns::DescribeProducers(const PrefetchRunnerOptions& options) {
  // The region runs with the options of the stage, such as its thread pool.
  CallableOptions fetch;
  *fetch.mutable_run_options() = options.run_options();
  *feeds_.options.mutable_run_options() = options.run_options();
  // A protobuf map has no fixed order, but the feeds need one.
  const std::map<std::string, std::string> ordered(
      options.named_feed_input_tensors().begin(),
      options.named_feed_input_tensors().end());
  for (const auto& [fed, value] : ordered) {
    feeds_.options.add_fetch(value);
    fetch.add_feed(fed);
  }
  for (const std::string& op : options.fetch_ops()) {
    SharedCallable& producer = producers_[op];
    producer.options = fetch;
    // A bool tensor is alive if a record was put.
    if (absl::StrContains(op, ':')) {
      producer.options.add_fetch(op);
    } else {
      producer.options.add_target(op);
    }
    producer_of_.push_back(&producer);
  }
  bool uses_session_threads = false;
  TF_RETURN_IF_ERROR(
      UsesSessionThreads(options.run_options(), &uses_session_threads));
  if (!uses_session_threads) return OkStatus();
  // Each source has its own threads, so that a source that waits in all of them
  // does not hold up the others.
  feeds_.threads.emplace();
  for (auto& [op, producer] : producers_) producer.threads.emplace();
  return OkStatus();
}

Status PreparedRuns::PrepareProducer(int index) {
  SharedCallable* const producer = producer_of_[index];
  for (SharedCallable* callable : {&feeds_, producer}) {
    if (callable->threads.has_value()) callable->threads->AddProducer();
  }
  if (HasFeeds()) TF_RETURN_IF_ERROR(Prepare(&feeds_));
  return Prepare(producer);
}

Status PreparedRuns::Prepare(SharedCallable* callable) {
  absl::call_once(callable->once, [&]() {
    callable->status = Prepare(static_cast<Callable*>(callable));
  });
  return callable->status;
}

Status PreparedRuns::Prepare(Callable* callable) {
  TF_RETURN_IF_ERROR(
      session_->MakeCallable(callable->options, &callable->handle));
  mutex_lock l(mu_);
  handles_.push_back(callable->handle);
  return OkStatus();
}

Status PreparedRuns::Close(const Status& cause) const {
  return RunOp(close_.handle, {Tensor(static_cast<int32>(cause.raw_code())),
                               Tensor(tstring(cause.message()))});
}

Status PreparedRuns::ReadStats(BufferStats* stats) {
  if (stats_.options.fetch_size() == 0) {
    return errors::Unimplemented(
        "The graph has no op that reads the statistics of the stage.");
  }
  TF_RETURN_IF_ERROR(Prepare(&stats_));
  std::vector<Tensor> fetched;
  TF_RETURN_IF_ERROR(Run(&stats_, {}, &fetched));
  if (fetched.size() != 1 || fetched[0].dtype() != DT_STRING ||
      fetched[0].NumElements() != 1 ||
      !stats->ParseFromString(std::string(fetched[0].flat<tstring>()(0)))) {
    return errors::InvalidArgument("Tensor '", stats_.options.fetch(0),
                                   "' is no statistics of a stage's buffer.");
  }
  return OkStatus();
}

Status PreparedRuns::Resume() {
  core::WeakPtr<SourceReader> stage;
  Status status;
  {
    const ScopedResumedStage resumed(&stage);
    status = RunOp(resume_.handle, {});
  }
  mutex_lock l(mu_);
  stage_ = std::move(stage);
  return status;
}

core::RefCountPtr<SourceReader> PreparedRuns::FindStage() const {
  tf_shared_lock l(mu_);
  return stage_.GetNewRef();
}

Status PreparedRuns::Cancel() const {
  // A closing session runs no op any more, and a run that waits for its stage is
  // not in the session yet.
  if (const auto stage = FindStage()) stage->Cancel();
  return RunOp(cancel_.handle, {});
}

Status PreparedRuns::ProduceRecord(int index, Result* result, int64_t* micros) {
  SharedCallable* const producer = producer_of_[index];
  std::shared_ptr<StagedRun> run;
  if (core::RefCountPtr<SourceReader> stage = FindStage()) {
    run = std::make_shared<StagedRun>(
        std::move(stage), reinterpret_cast<std::uintptr_t>(producer));
    const Status admitted = run->is_refused()
                                ? errors::Cancelled(kHasEnded)
                                : run->AwaitAdmission(/*cancellation=*/nullptr);
    if (!admitted.ok()) {
      *result = absl::StrContains(admitted.message(), kHasEnded)
                    ? Result::kEnded
                    : Result::kFailed;
      return admitted;
    }
  }
  bool has_put = false;
  const auto began = std::chrono::steady_clock::now();
  const Status status = RunRegion(producer, run, &has_put);
  *micros = std::chrono::duration_cast<std::chrono::microseconds>(
                std::chrono::steady_clock::now() - began)
                .count();
  if (run != nullptr && run->End(status)) {
    *result = Result::kStale;
  } else if (status.ok()) {
    *result = has_put ? Result::kRecord : Result::kNoRecord;
  } else if (absl::StrContains(status.message(), kIsStale)) {
    *result = Result::kStale;
  } else if (absl::StrContains(status.message(), kHasEnded)) {
    *result = Result::kEnded;
  } else {
    *result = Result::kFailed;
  }
  return status;
}

Status PreparedRuns::RunRegion(SharedCallable* producer,
                               const std::shared_ptr<StagedRun>& run,
                               bool* has_put) {
  const ScopedCallableTimeout timeout(
      producer->options.run_options().timeout_in_ms());
  const ScopedRunInCaller in_caller;
  std::vector<Tensor> feeds;
  if (HasFeeds()) {
    const ScopedStagedRun::ScopedNextRun next(run);
    TF_RETURN_IF_ERROR(Run(&feeds_, {}, &feeds));
  }
  const ScopedStagedRun::ScopedNextRun next(run);
  std::vector<Tensor> done;
  const Status status = Run(producer, feeds, &done);
  const bool is_dead = IsDeadFetch(producer->options, status, done);
  *has_put = !is_dead;
  return is_dead ? OkStatus() : status;
}

Status PreparedRuns::Run(SharedCallable* callable,
                         const std::vector<Tensor>& feeds,
                         std::vector<Tensor>* fetches) {
  const StagedRunThreads::ScopedNextRun run(
      callable->threads.has_value() ? &*callable->threads : nullptr);
  return Run(callable->handle, feeds, fetches);
}

void PreparedRuns::Release() {
  std::vector<Handle> handles;
  {
    mutex_lock l(mu_);
    handles.swap(handles_);
  }
  for (Handle handle : handles) {
    session_->ReleaseCallable(handle).IgnoreError();
  }
}

void PreparedRuns::RetireThreads() {
  if (feeds_.threads.has_value()) feeds_.threads->Retire();
  for (auto& [op, producer] : producers_) {
    if (producer.threads.has_value()) producer.threads->Retire();
  }
}

Status PreparedRuns::Run(Handle handle, const std::vector<Tensor>& feeds,
                         std::vector<Tensor>* fetches) const {
  // The runner does not read the metadata, but a session writes to it if the
  // run is traced or the session builds a cost model.
  RunMetadata metadata;
  const ScopedNoSyncOnFinish no_sync;
  Status status = session_->RunCallable(handle, feeds, fetches, &metadata);
  if (IsSessionClosed(status)) {
    return errors::Cancelled("The session has been closed.");
  }
  return status;
}

Status PreparedRuns::RunOp(Handle handle,
                           const std::vector<Tensor>& feeds) const {
  std::vector<Tensor> nothing;
  const Status status = Run(handle, feeds, &nothing);
  // A second run says which of the two it was: a session that the program has
  // closed knows it before it asks the server.
  return IsUnknownToServer(status) ? Run(handle, feeds, &nothing) : status;
}

}  // namespace staging
}  // namespace tensorflow
