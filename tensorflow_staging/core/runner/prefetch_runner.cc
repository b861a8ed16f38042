// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prefetch_runner.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/runner/producers.h"

namespace tensorflow {
namespace staging {
namespace {

Status CheckOptions(const PrefetchRunnerOptions& options) {
  const std::pair<const char*, const std::string&> required[] = {
      {"name", options.name()},
      {"cancel_op", options.cancel_op()},
      {"resume_op", options.resume_op()},
      {"close_op", options.close_op()},
      {"error_code_tensor", options.error_code_tensor()},
      {"error_message_tensor", options.error_message_tensor()}};
  for (const auto& [field, value] : required) {
    if (value.empty()) {
      return errors::InvalidArgument("PrefetchRunnerOptions.", field,
                                     " is empty.");
    }
  }
  if (options.fetch_ops().empty()) {
    return errors::InvalidArgument(
        "PrefetchRunnerOptions.fetch_ops of stage '", options.name(),
        "' is empty: there is nothing to run ahead.");
  }
  if (options.tune_threads() && options.fetch_ops_size() != 1) {
    return errors::InvalidArgument("PrefetchRunnerOptions.fetch_ops of stage '",
                                   options.name(), "' has ",
                                   options.fetch_ops_size(),
                                   " entries; with tune_threads it must have "
                                   "one, which the runner repeats.");
  }
  return OkStatus();
}

}  // namespace

Status PrefetchRunner::Create(std::shared_ptr<Session> session,
                              const PrefetchRunnerOptions& options,
                              std::unique_ptr<PrefetchRunner>* runner) {
  TF_RETURN_IF_ERROR(CheckOptions(options));
  Session* const observed = session.get();
  auto producers = std::make_shared<Producers>(std::move(session), options);
  const SessionObserverId observer_id = ObserveSession(
      observed, [producers]() { producers->OnSessionClosing(); });
  runner->reset(new PrefetchRunner(std::move(producers), observer_id));
  return OkStatus();
}

PrefetchRunner::PrefetchRunner(std::shared_ptr<Producers> producers,
                               SessionObserverId observer_id)
    : producers_(std::move(producers)), observer_id_(observer_id) {}

PrefetchRunner::~PrefetchRunner() {
  producers_->Stop();
  // The closing session joins the threads that Stop left behind.
  if (producers_->AllJoined()) StopObservingSession(observer_id_);
}

Status PrefetchRunner::Start() { return producers_->Start(); }

void PrefetchRunner::Stop() { producers_->Stop(); }

Status PrefetchRunner::ReadBuffer(BufferStats* stats) {
  return producers_->ReadBuffer(stats);
}

PrefetchRunner::Stats PrefetchRunner::GetStats() const {
  return producers_->GetStats();
}

}  // namespace staging
}  // namespace tensorflow
