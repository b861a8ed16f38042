// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prefetch_runner.h"

#include <functional>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace staging {
namespace {

// How often a closing session reports what it is still waiting for.
constexpr std::chrono::seconds kClosingReportPeriod(10);

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

ProducersOptions OptionsOfProducers(const PrefetchRunnerOptions& options,
                                    std::function<void()> on_last_left) {
  ProducersOptions producers;
  producers.stage = options.name();
  producers.sources = {options.fetch_ops().begin(), options.fetch_ops().end()};
  producers.any_order = options.any_order();
  producers.tuning = std::make_shared<StageTuning>(options.tune_threads());
  producers.on_last_left = std::move(on_last_left);
  return producers;
}

}  // namespace

Status PrefetchRunner::Create(std::shared_ptr<Session> session,
                              const PrefetchRunnerOptions& options,
                              std::shared_ptr<PrefetchRunner>* runner) {
  TF_RETURN_IF_ERROR(CheckOptions(options));
  Session* const observed = session.get();
  const std::shared_ptr<PrefetchRunner> shared(
      new PrefetchRunner(std::move(session), options));
  const SessionObserverId observer =
      ObserveSession(observed, [shared]() { shared->OnSessionClosing(); });
  runner->reset(shared.get(), [shared, observer](PrefetchRunner*) {
    // The closing session joins the threads that Stop left behind.
    if (shared->Stop()) StopObservingSession(observer);
  });
  return OkStatus();
}

PrefetchRunner::PrefetchRunner(std::shared_ptr<Session> session,
                               const PrefetchRunnerOptions& options)
    : session_(std::move(session)),
      options_(options),
      producers_(std::make_shared<Producers>(
          OptionsOfProducers(options, [this] { Leave(); }), &runs_)) {}

Status PrefetchRunner::Start() {
  {
    mutex_lock l(mu_);
    if (producers_->stopped() || session_gone_) return StoppedStatus();
    if (started_) {
      return errors::FailedPrecondition("The runner of stage '",
                                        options_.name(),
                                        "' has been started already.");
    }
    started_ = true;
    ++inside_;
  }
  const Status status = Open();
  if (!status.ok()) producers_->Stop();
  Leave();
  return status;
}

Status PrefetchRunner::Open() {
  TF_RETURN_IF_ERROR(runs_.Describe(session_.get(), options_));
  // The producers prepare their runs, which takes the longest, meanwhile.
  {
    mutex_lock l(mu_);
    ++inside_;
  }
  if (!producers_->Start()) Leave();
  TF_RETURN_IF_ERROR(runs_.PrepareControlOps());
  {
    mutex_lock l(mu_);
    prepared_ = true;
  }
  TF_RETURN_IF_ERROR(runs_.Resume());
  if (producers_->Begin()) return OkStatus();
  // Stop may have cancelled the buffer before Resume opened it.
  CancelBuffer();
  return StoppedStatus();
}

bool PrefetchRunner::Stop() {
  // 1. Ask the threads to leave. Cancel the buffer only once, because another
  //    runner may use it later.
  if (producers_->Stop()) CancelBuffer();
  // 2. Wait until they have left.
  std::shared_ptr<Session> session;
  {
    mutex_lock l(mu_);
    if (!AwaitNobodyInside(stop_gave_up_ ? std::chrono::milliseconds(0)
                                         : kStopPatience)) {
      if (!stop_gave_up_) {
        LOG(WARNING) << "Stage '" << options_.name() << "' was stopped while "
                     << "its region is still running. The stage ends when that "
                     << "run ends or the session closes.";
      }
      stop_gave_up_ = true;
      return false;
    }
    prepared_ = false;
    if (!session_gone_) session.swap(session_);
    if (session != nullptr) ++inside_;
  }
  // 3. Clean up, unless the closing session or another Stop does. Release the
  //    session last: this may be its last reference, and its destructor waits
  //    until inside_ is 0.
  producers_->Join();
  runs_.RetireThreads();
  if (session != nullptr) {
    runs_.Release();
    Leave();
  }
  return true;
}

void PrefetchRunner::OnSessionClosing() {
  // 1. Ask the threads to leave, as Stop does. Another thread may be in Stop
  //    without having cancelled the buffer yet; in a closing session, it does
  //    no harm to cancel twice.
  producers_->Stop();
  CancelBuffer();
  // 2. Prevent further use of the session, and wait until inside_ is 0. If this
  //    object shares ownership of the session, do not wait long: the threads
  //    inside keep the session alive.
  {
    mutex_lock l(mu_);
    session_gone_ = true;
    const bool shares = session_.use_count() > 0;
    while (!AwaitNobodyInside(shares ? kStopPatience : kClosingReportPeriod)) {
      LOG(WARNING) << "The session is closing while the region of stage '"
                   << options_.name()
                   << "' is still running, in code that cannot be cancelled. "
                   << (shares ? "The session stays alive until that run ends."
                              : "The session waits until that run ends.");
      if (!shares) continue;
      stop_gave_up_ = true;
      Env::Default()->SchedClosure(
          [runner = shared_from_this()]() { runner->JoinAndReleaseSession(); });
      return;
    }
  }
  JoinAndReleaseSession();
}

void PrefetchRunner::JoinAndReleaseSession() {
  {
    mutex_lock l(mu_);
    while (inside_ > 0) nobody_inside_.Wait(&mu_);
  }
  // The session goes last: this may be its last reference.
  producers_->Join();
  runs_.RetireThreads();
  session_.reset();
}

PrefetchRunner::Stats PrefetchRunner::GetStats() const {
  Stats stats;
  static_cast<ProducerTeam::Counts&>(stats) = producers_->GetCounts();
  stats.name = options_.name();
  stats.tunes_threads = producers_->tuning().tunes_threads();
  stats.threads_settled = producers_->tuning().settled();
  stats.orders_threads = producers_->keep_order();
  return stats;
}

Status PrefetchRunner::ReadBuffer(BufferStats* stats) {
  {
    mutex_lock l(mu_);
    if (!prepared_ || producers_->stopped() || session_gone_) {
      return errors::FailedPrecondition("Stage '", options_.name(),
                                        "' is not running.");
    }
    ++inside_;
  }
  const Status status = runs_.ReadStats(stats);
  Leave();
  return status;
}

void PrefetchRunner::CancelBuffer() {
  {
    mutex_lock l(mu_);
    if (!prepared_ || session_gone_) return;
    ++inside_;
  }
  const Status status = runs_.Cancel();
  // A session that is closing, or has been closed, has cancelled its runs, and
  // with them the puts.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not cancel its buffer: " << status;
  }
  Leave();
}

void PrefetchRunner::Leave() {
  mutex_lock l(mu_);
  if (--inside_ == 0) nobody_inside_.NotifyAll();
}

bool PrefetchRunner::AwaitNobodyInside(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (inside_ > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    nobody_inside_.WaitFor(&mu_, left);
  }
  return true;
}

Status PrefetchRunner::StoppedStatus() const {
  return errors::Cancelled("The runner of stage '", options_.name(),
                           "' was stopped before it had started.");
}

}  // namespace staging
}  // namespace tensorflow
