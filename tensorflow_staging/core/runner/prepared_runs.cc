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
  options_ = &options;
  DescribeControlOps();
  return DescribeProducers();
}

void PreparedRuns::DescribeControlOps() {
  // The control ops never wait. They must work even while code that cannot be
  // cancelled occupies every thread of the session, so they run in the thread
  // that calls them.
  CallableOptions control;
  control.mutable_run_options()->set_inter_op_thread_pool(-1);
  control.mutable_run_options()->set_timeout_in_ms(
      options_->run_options().timeout_in_ms());

  resume_.options = control;
  resume_.options.add_target(options_->resume_op());

  cancel_.options = control;
  cancel_.options.add_target(options_->cancel_op());

  close_.options = control;
  close_.options.add_feed(options_->error_code_tensor());
  close_.options.add_feed(options_->error_message_tensor());
  close_.options.add_target(options_->close_op());

  stats_.options = control;
  if (!options_->stats_tensor().empty()) {
    stats_.options.add_fetch(options_->stats_tensor());
  }
}

Status PreparedRuns::PrepareControlOps() {
  for (Callable* callable : {&resume_, &cancel_, &close_}) {
    TF_RETURN_IF_ERROR(Prepare(callable));
  }
  return OkStatus();
}

Status PreparedRuns::DescribeProducers() {
  // The region runs with the options of the stage, such as its thread pool.
  CallableOptions fetch;
  *fetch.mutable_run_options() = options_->run_options();
  *feeds_.options.mutable_run_options() = options_->run_options();
  // A protobuf map has no fixed order, but the feeds need one.
  const std::map<std::string, std::string> ordered(
      options_->named_feed_input_tensors().begin(),
      options_->named_feed_input_tensors().end());
  for (const auto& [fed, value] : ordered) {
    feeds_.options.add_fetch(value);
    fetch.add_feed(fed);
  }
  for (const std::string& op : options_->fetch_ops()) {
    Callable& producer = producers_[op];
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
      UsesSessionThreads(options_->run_options(), &uses_session_threads));
  if (!uses_session_threads) return OkStatus();
  // Each source has its own threads, so that a source that waits in all of them
  // does not hold up the others.
  feeds_.threads.emplace();
  for (auto& [op, producer] : producers_) producer.threads.emplace();
  return OkStatus();
}

Status PreparedRuns::PrepareProducer(int source) {
  Callable* const producer = producer_of_[source];
  for (Callable* callable : {&feeds_, producer}) {
    if (callable->threads.has_value()) callable->threads->AddProducer();
  }
  if (HasFeeds()) TF_RETURN_IF_ERROR(Prepare(&feeds_));
  return Prepare(producer);
}

Status PreparedRuns::Prepare(Callable* callable) {
  absl::call_once(callable->once, [this, callable]() {
    callable->status =
        session_->MakeCallable(callable->options, &callable->handle);
    if (!callable->status.ok()) return;
    mutex_lock l(mu_);
    handles_.push_back(callable->handle);
  });
  return callable->status;
}

Status PreparedRuns::Close(int source, uint64_t number, const Status& cause) {
  // The op does not say who reports.
  if (const auto stage = FindStage()) {
    stage->Close(cause, IdOf(source, number));
    return OkStatus();
  }
  return RunOp(&close_, {Tensor(static_cast<int32>(cause.raw_code())),
                         Tensor(tstring(cause.message()))});
}

Status PreparedRuns::ReadStats(BufferStats* stats) {
  if (stats_.options.fetch_size() == 0) {
    return errors::Unimplemented(
        "The graph has no op that reads the statistics of the stage.");
  }
  TF_RETURN_IF_ERROR(Prepare(&stats_));
  std::vector<Tensor> fetched;
  TF_RETURN_IF_ERROR(Call(&stats_, {}, &fetched));
  if (fetched.size() != 1 || fetched[0].dtype() != DT_STRING ||
      fetched[0].NumElements() != 1 ||
      !stats->ParseFromString(std::string(fetched[0].flat<tstring>()(0)))) {
    return errors::InvalidArgument("Tensor '", stats_.options.fetch(0),
                                   "' is no statistics of a stage's buffer.");
  }
  return OkStatus();
}

Status PreparedRuns::Resume() {
  core::WeakPtr<Stage> stage;
  Status status;
  {
    const ScopedResumedStage resumed(&stage);
    status = RunOp(&resume_, {});
  }
  mutex_lock l(mu_);
  stage_ = std::move(stage);
  return status;
}

core::RefCountPtr<Stage> PreparedRuns::FindStage() const {
  tf_shared_lock l(mu_);
  return stage_.GetNewRef();
}

Status PreparedRuns::Cancel() {
  // A closing session runs no op any more, and a run that waits for its stage is
  // not in the session yet.
  if (const auto stage = FindStage()) stage->Cancel();
  return RunOp(&cancel_, {});
}

Status PreparedRuns::Run(int source, const std::shared_ptr<StagedRun>& run,
                         bool* has_put) {
  Callable* const producer = producer_of_[source];
  StagedCall call;
  call.run = run;
  call.timeout_millis = producer->options.run_options().timeout_in_ms();
  call.runs_in_caller = true;
  std::vector<Tensor> feeds;
  if (HasFeeds()) TF_RETURN_IF_ERROR(Call(&feeds_, {}, &feeds, call));
  std::vector<Tensor> done;
  const Status status = Call(producer, feeds, &done, std::move(call));
  *has_put = !IsDeadFetch(producer->options, status, done);
  return *has_put ? status : OkStatus();
}

void PreparedRuns::Release() {
  std::vector<Session::CallableHandle> handles;
  {
    mutex_lock l(mu_);
    handles.swap(handles_);
  }
  for (Session::CallableHandle handle : handles) {
    session_->ReleaseCallable(handle).IgnoreError();
  }
}

void PreparedRuns::RetireThreads() {
  if (feeds_.threads.has_value()) feeds_.threads->Retire();
  for (auto& [op, producer] : producers_) {
    if (producer.threads.has_value()) producer.threads->Retire();
  }
}

Status PreparedRuns::Call(Callable* callable, const std::vector<Tensor>& feeds,
                          std::vector<Tensor>* fetches, StagedCall call) {
  if (callable->threads.has_value()) call.threads = &*callable->threads;
  const ScopedStagedCall scope(std::move(call));
  // The runner does not read the metadata, but a session writes to it if the
  // run is traced or the session builds a cost model.
  RunMetadata metadata;
  Status status =
      session_->RunCallable(callable->handle, feeds, fetches, &metadata);
  if (IsSessionClosed(status)) {
    return errors::Cancelled("The session has been closed.");
  }
  return status;
}

Status PreparedRuns::RunOp(Callable* callable,
                           const std::vector<Tensor>& feeds) {
  std::vector<Tensor> nothing;
  const Status status = Call(callable, feeds, &nothing);
  // A second run says which of the two it was: a session that the program has
  // closed knows it before it asks the server.
  return IsUnknownToServer(status) ? Call(callable, feeds, &nothing) : status;
}

}  // namespace staging
}  // namespace tensorflow
