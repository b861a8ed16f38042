// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producers.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/thread_name.h"

namespace tensorflow {
namespace staging {
namespace {

// How long Stop waits for a thread that the cancelled buffer does not wake.
// tf.train.Coordinator.join looks at its threads after 2 and then after 4
// seconds, and is to return within 5; this ends before its first look.
constexpr std::chrono::milliseconds kStopPatience(1500);
// How often a closing session that cannot go on reports what it waits for.
constexpr std::chrono::seconds kClosingReportPeriod(10);
// How often a producer whose source has ended runs it again while another
// source of the stage goes on: its iterator may have been initialised again.
constexpr std::chrono::milliseconds kEndedSourcePeriod(100);
// The longest pause of a thread that closes the buffer repeatedly.
constexpr std::chrono::milliseconds kLongestPause(100);

}  // namespace

Producers::Producers(std::shared_ptr<Session> session,
                     const PrefetchRunnerOptions& options)
    : session_(std::move(session)),
      options_(options),
      outcomes_(options),
      num_sources_(std::set<std::string>(options.fetch_ops().begin(),
                                         options.fetch_ops().end())
                       .size()),
      pauses_(options.fetch_ops_size()) {}

Status Producers::Start() {
  {
    mutex_lock l(mu_);
    if (stopping_ || session_gone_) return StoppedStatus();
    if (started_) {
      return errors::FailedPrecondition("The runner of stage '",
                                        options_.name(),
                                        "' has been started already.");
    }
    started_ = true;
    ++inside_;
  }
  Status status = runs_.Prepare(session_.get(), options_);
  if (status.ok()) {
    {
      mutex_lock l(mu_);
      prepared_ = true;
    }
    status = runs_.Resume();
  }
  bool stopped = false;
  if (status.ok()) {
    mutex_lock l(mu_);
    stopped = stopping_;
    if (!stopped) {
      const int count = options_.fetch_ops_size();
      inside_ += count;
      working_ = count;
      for (int i = 0; i < count; ++i) {
        threads_.emplace_back(Env::Default()->StartThread(
            ThreadOptions(), strings::StrCat(options_.name(), "_prefetch_", i),
            [producers = shared_from_this(), i]() { producers->Work(i); }));
      }
    }
  }
  if (stopped) {
    // Stop may have cancelled the buffer before Resume opened it.
    CancelBuffer();
    status = StoppedStatus();
  }
  Leave();
  return status;
}

void Producers::Work(int index) {
  SetStageThreadName(options_.name());
  // 1. Produce records until there is a reason to leave.
  while (!enough_.load(std::memory_order_acquire) &&
         Handle(index, runs_.ProduceRecord(index))) {
  }
  // 2. The last thread to leave closes the buffer with the reason why no more
  //    records come, unless Stop has cancelled it.
  bool close;
  Status cause;
  {
    mutex_lock l(mu_);
    close = --working_ == 0 && !stopping_ && !options_.restartable();
    cause = cause_;
  }
  if (close) CloseBuffer(cause);
  // 3. From here on the session may be destroyed.
  Leave();
}

bool Producers::Handle(int index, const Status& status) {
  const RunOutcome outcome = outcomes_.Of(status);
  if (outcome == RunOutcome::kRecord) return CountRecord(index);
  {
    mutex_lock l(mu_);
    if (stopping_) return false;
  }
  switch (outcome) {
    case RunOutcome::kEndOfData:
      return EndStage(index, OkStatus());
    case RunOutcome::kIgnored:
      return CountIgnored(status);
    default:
      break;
  }
  // A closing session cancels its steps just before it reports that it closes.
  if (!errors::IsCancelled(status)) {
    LOG(WARNING) << "Stage '" << options_.name() << "' ends with an error, "
                 << "which the step that takes its records will report: "
                 << status;
  }
  return EndStage(index, status);
}

bool Producers::CountRecord(int index) {
  records_.fetch_add(1, std::memory_order_relaxed);
  pauses_[index] = pauses_[index].zero();
  if (num_sources_ > 1 && options_.restartable()) {
    mutex_lock l(mu_);
    ended_ops_.clear();
  }
  return true;
}

bool Producers::CountIgnored(const Status& status) {
  const int64_t ignored = ignored_.fetch_add(1) + 1;
  LOG_EVERY_N_SEC(WARNING, 1)
      << "Stage '" << options_.name() << "' ignored an error, because "
      << "ignored_exception_types has its type; " << ignored << " so far. "
      << status;
  return true;
}

bool Producers::EndStage(int index, const Status& cause) {
  if (!options_.restartable()) {
    if (!cause.ok()) {
      mutex_lock l(mu_);
      if (cause_.ok()) cause_ = cause;
      enough_.store(true, std::memory_order_release);
    }
    return false;
  }
  if (cause.ok() && !AllSourcesEnded(index)) return Pause(kEndedSourcePeriod);
  if (!CloseBuffer(cause)) return false;
  std::chrono::milliseconds& pause = pauses_[index];
  const bool go_on = Pause(pause);
  pause = std::min(2 * pause + std::chrono::milliseconds(1), kLongestPause);
  return go_on;
}

bool Producers::AllSourcesEnded(int index) {
  mutex_lock l(mu_);
  // Wakes the other ended sources, which look again whether all have ended.
  if (ended_ops_.insert(options_.fetch_ops(index)).second) {
    changed_.notify_all();
  }
  if (ended_ops_.size() < num_sources_) return false;
  ended_ops_.clear();
  return true;
}

bool Producers::Pause(std::chrono::milliseconds time) {
  mutex_lock l(mu_);
  if (!stopping_ && time > time.zero()) changed_.wait_for(l, time);
  return !stopping_;
}

bool Producers::CloseBuffer(const Status& cause) {
  const Status status = runs_.Close(cause);
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not close its buffer: " << status;
  }
  return status.ok();
}

void Producers::CancelBuffer() {
  {
    mutex_lock l(mu_);
    if (!prepared_ || session_gone_) return;
    ++inside_;
  }
  const Status status = runs_.Cancel();
  // A closing session has cancelled its steps, and with them the puts, itself.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not cancel its buffer: " << status;
  }
  Leave();
}

void Producers::Stop() {
  // 1. Ask the threads to leave. The buffer is cancelled only once: later
  //    another runner may use it.
  bool first;
  std::chrono::milliseconds patience = kStopPatience;
  {
    mutex_lock l(mu_);
    first = !stopping_;
    AskThreadsToLeave();
    if (stop_gave_up_) patience = std::chrono::milliseconds(0);
  }
  if (first) CancelBuffer();
  // 2. Wait until they have left.
  std::vector<std::unique_ptr<Thread>> threads;
  std::shared_ptr<Session> session;
  {
    mutex_lock l(mu_);
    if (!AwaitNobodyInside(&l, patience)) {
      if (!stop_gave_up_) {
        LOG(WARNING) << "Stage '" << options_.name() << "' was stopped while "
                     << "its region is still running. It ends when that run "
                     << "does, or when the session closes.";
      }
      stop_gave_up_ = true;
      return;
    }
    threads.swap(threads_);
    prepared_ = false;
    if (!session_gone_) session.swap(session_);
    if (session != nullptr) ++inside_;
  }
  // 3. Clean up, unless the session or another Stop does. The session goes
  //    last: this may be its last reference, and its destructor waits for those
  //    inside.
  threads.clear();
  if (session != nullptr) {
    runs_.Release();
    Leave();
  }
}

void Producers::OnSessionClosing() {
  // 1. As Stop does. Another thread may be in Stop and may not have cancelled
  //    the buffer yet; cancelling twice does no harm in a closing session.
  {
    mutex_lock l(mu_);
    AskThreadsToLeave();
  }
  CancelBuffer();
  // 2. Let nobody enter any more, and wait for those inside. With a share in
  //    the session they may stay longer: it lives as long as they do.
  {
    mutex_lock l(mu_);
    session_gone_ = true;
    const bool shares = session_.use_count() > 0;
    while (
        !AwaitNobodyInside(&l, shares ? kStopPatience : kClosingReportPeriod)) {
      LOG(WARNING) << "The session is closing while the region of stage '"
                   << options_.name()
                   << "' is still running, in code that cannot be cancelled. "
                   << (shares ? "The session is kept until that run ends."
                              : "It waits for the end of that run.");
      if (!shares) continue;
      stop_gave_up_ = true;
      Env::Default()->SchedClosure([producers = shared_from_this()]() {
        producers->JoinAndReleaseSession();
      });
      return;
    }
  }
  JoinAndReleaseSession();
}

void Producers::JoinAndReleaseSession() {
  std::vector<std::unique_ptr<Thread>> threads;
  {
    mutex_lock l(mu_);
    while (inside_ > 0) changed_.wait(l);
    threads.swap(threads_);
  }
  // The session goes last: this may be its last reference.
  threads.clear();
  session_.reset();
}

PrefetchRunner::Stats Producers::GetStats() const {
  PrefetchRunner::Stats stats;
  stats.name = options_.name();
  stats.records = records_;
  stats.ignored = ignored_;
  mutex_lock l(mu_);
  stats.running = working_ > 0;
  return stats;
}

void Producers::AskThreadsToLeave() {
  stopping_ = true;
  enough_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Producers::Leave() {
  mutex_lock l(mu_);
  if (--inside_ == 0) changed_.notify_all();
}

bool Producers::AwaitNobodyInside(mutex_lock* l,
                                  std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (inside_ > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.wait_for(*l, left);
  }
  return true;
}

Status Producers::StoppedStatus() const {
  return errors::Cancelled("The runner of stage '", options_.name(),
                           "' was stopped before it had started.");
}

}  // namespace staging
}  // namespace tensorflow
