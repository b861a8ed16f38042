// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prepared_runs.h"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"

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

}  // namespace

Status PreparedRuns::Prepare(Session* session,
                             const PrefetchRunnerOptions& options) {
  session_ = session;
  TF_RETURN_IF_ERROR(PrepareControlOps(options));
  return PrepareProducers(options);
}

Status PreparedRuns::PrepareControlOps(const PrefetchRunnerOptions& options) {
  // The control ops never wait. They must work even while code that cannot be
  // cancelled occupies every thread of the session, so they run in the thread
  // that calls them.
  CallableOptions control;
  control.mutable_run_options()->set_inter_op_thread_pool(-1);
  control.mutable_run_options()->set_timeout_in_ms(
      options.run_options().timeout_in_ms());

  CallableOptions resume = control;
  resume.add_target(options.resume_op());
  TF_RETURN_IF_ERROR(MakeCallable(resume, &resume_));

  CallableOptions cancel = control;
  cancel.add_target(options.cancel_op());
  TF_RETURN_IF_ERROR(MakeCallable(cancel, &cancel_));

  CallableOptions close = control;
  close.add_feed(options.error_code_tensor());
  close.add_feed(options.error_message_tensor());
  close.add_target(options.close_op());
  return MakeCallable(close, &close_);
}

Status PreparedRuns::PrepareProducers(const PrefetchRunnerOptions& options) {
  // The region runs with the options of the stage, such as its thread pool.
  CallableOptions fetch;
  *fetch.mutable_run_options() = options.run_options();
  if (!options.named_feed_input_tensors().empty()) {
    CallableOptions feeds;
    *feeds.mutable_run_options() = options.run_options();
    // A protobuf map has no fixed order, but the feeds need one.
    const std::map<std::string, std::string> ordered(
        options.named_feed_input_tensors().begin(),
        options.named_feed_input_tensors().end());
    for (const auto& [fed, value] : ordered) {
      feeds.add_fetch(value);
      fetch.add_feed(fed);
    }
    TF_RETURN_IF_ERROR(MakeCallable(feeds, &feeds_.emplace()));
  }
  // Producers that run the same op share a callable.
  std::map<std::string, Handle> handles;
  for (const std::string& op : options.fetch_ops()) {
    auto it = handles.find(op);
    if (it == handles.end()) {
      fetch.clear_target();
      fetch.add_target(op);
      Handle handle = 0;
      TF_RETURN_IF_ERROR(MakeCallable(fetch, &handle));
      it = handles.emplace(op, handle).first;
    }
    producers_.push_back(it->second);
  }
  return OkStatus();
}

Status PreparedRuns::Close(const Status& cause) const {
  return RunOp(close_, {Tensor(static_cast<int32>(cause.raw_code())),
                        Tensor(tstring(cause.message()))});
}

Status PreparedRuns::ProduceRecord(int index) const {
  std::vector<Tensor> feeds;
  if (feeds_) TF_RETURN_IF_ERROR(Run(*feeds_, {}, &feeds));
  return RunOp(producers_[index], feeds);
}

void PreparedRuns::Release() {
  for (Handle handle : handles_) {
    session_->ReleaseCallable(handle).IgnoreError();
  }
  handles_.clear();
}

Status PreparedRuns::MakeCallable(const CallableOptions& options,
                                  Handle* handle) {
  TF_RETURN_IF_ERROR(session_->MakeCallable(options, handle));
  handles_.push_back(*handle);
  return OkStatus();
}

Status PreparedRuns::Run(Handle handle, const std::vector<Tensor>& feeds,
                         std::vector<Tensor>* fetches) const {
  // The runner does not read the metadata, but a session writes to it if the
  // run is traced or the session builds a cost model.
  RunMetadata metadata;
  Status status = session_->RunCallable(handle, feeds, fetches, &metadata);
  if (IsSessionClosed(status)) {
    return errors::Cancelled("The session has been closed.");
  }
  return status;
}

Status PreparedRuns::RunOp(Handle handle,
                           const std::vector<Tensor>& feeds) const {
  std::vector<Tensor> nothing;
  return Run(handle, feeds, &nothing);
}

}  // namespace staging
}  // namespace tensorflow
