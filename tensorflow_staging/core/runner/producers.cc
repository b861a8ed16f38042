// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producers.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tensorflow/core/lib/gtl/cleanup.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env_time.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow_staging/core/framework/thread_name.h"

namespace tensorflow {
namespace staging {
namespace {

// How long Stop waits for a thread that the cancelled buffer does not wake.
// tf.train.Coordinator.join checks its threads after 2 and then after 4
// seconds, and should return within 5; Stop ends before the first check.
constexpr std::chrono::milliseconds kStopPatience(1500);
// How often a closing session reports what it is still waiting for.
constexpr std::chrono::seconds kClosingReportPeriod(10);
// How often a producer whose source has ended tries again while another source
// of the stage continues: its iterator may have been initialised again.
constexpr std::chrono::milliseconds kEndedSourcePeriod(100);
// The longest pause of a thread of a distributed session that closes the buffer
// repeatedly.
constexpr std::chrono::milliseconds kLongestPause(100);
// How long a thread that has found the end of the data lets others finish runs
// that they have begun: far longer than an error takes to arrive.
constexpr std::chrono::milliseconds kErrorsFirst(20);
// How many runs in a row may fail with an ignored error before their thread
// pauses, and its longest pause. So a stretch of bad records is skipped
// quickly, and a source that is broken for good takes about 1 % of a core.
constexpr int64_t kIgnoredWithoutPause = 100;
constexpr std::chrono::milliseconds kLongestIgnoredPause(10);

// Producers that compute gain nothing beyond the number of cores. Those that
// wait, as for storage, may; this many let a step that takes records 32 times
// as fast as one producer makes them go on without waiting, and twice that.
constexpr int kMostWaitingThreads = 64;

int MostThreads() {
  return std::max(port::NumSchedulableCPUs(), kMostWaitingThreads);
}

// Returns the CPU time that all threads of this process have taken.
int64_t CpuMicros() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * EnvTime::kSecondsToMicros +
         time.tv_nsec / EnvTime::kMicrosToNanos;
}

// Repeats the only fetch_op of a stage that chooses its number of threads.
PrefetchRunnerOptions WithThreads(PrefetchRunnerOptions options) {
  if (options.tune_threads()) {
    const std::string op = options.fetch_ops(0);
    while (options.fetch_ops_size() < MostThreads()) options.add_fetch_ops(op);
  }
  return options;
}

// Of a run that succeeded without putting a record. Ends the stage, also if a
// run may fail with the same type of error: the step would silently skip a
// record, or wait for ever.
Status NoRecordStatus() {
  return errors::InvalidArgument(
      "The run put no record, because a tensor of the record has no value: it "
      "belongs to a branch that was not chosen. If it does not, TensorFlow's "
      "optimizers can cause this for conditionals of version 1 within each "
      "other: set graph_options.rewrite_options.disable_meta_optimizer, or "
      "call tf.enable_control_flow_v2().");
}

}  // namespace

Producers::Producers(std::shared_ptr<Session> session,
                     const PrefetchRunnerOptions& options)
    : session_(std::move(session)),
      options_(WithThreads(options)),
      outcomes_(options),
      most_threads_(options_.fetch_ops_size()),
      num_sources_(std::set<std::string>(options.fetch_ops().begin(),
                                         options.fetch_ops().end())
                       .size()),
      pauses_(most_threads_),
      ignored_in_a_row_(most_threads_),
      has_closed_(most_threads_),
      has_produced_(most_threads_),
      active_threads_(options.tune_threads() ? 1 : most_threads_) {
  if (options.tune_threads()) {
    tuner_.emplace(most_threads_, port::NumSchedulableCPUs());
  }
}

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
  const Status status = Open();
  if (!status.ok()) {
    mutex_lock l(mu_);
    AskThreadsToLeave();
  }
  Leave();
  return status;
}

Status Producers::Open() {
  TF_RETURN_IF_ERROR(runs_.Describe(session_.get(), options_));
  {
    // The threads prepare their runs, which takes the longest, meanwhile.
    mutex_lock l(mu_);
    StartThreads(active_threads_);
  }
  TF_RETURN_IF_ERROR(runs_.PrepareControlOps());
  {
    mutex_lock l(mu_);
    prepared_ = true;
  }
  TF_RETURN_IF_ERROR(runs_.Resume());
  {
    mutex_lock l(mu_);
    open_ = !stopping_;
    changed_.NotifyAll();
    if (open_) return OkStatus();
  }
  // Stop may have cancelled the buffer before Resume opened it.
  CancelBuffer();
  return StoppedStatus();
}

void Producers::StartThreads(int count) {
  if (stopping_) return;
  for (int i = threads_.size(); i < count; ++i) {
    ++inside_;
    ++working_;
    threads_.emplace_back(Env::Default()->StartThread(
        ThreadOptions(), strings::StrCat(options_.name(), "_prefetch_", i),
        [producers = shared_from_this(), i]() { producers->Work(i); }));
  }
}

void Producers::Work(int index) {
  SetStageThreadName(options_.name());
  // 1. Produce records until this thread must leave. What cannot be prepared
  //    ends the stage, also if a run may fail with the same type of error.
  const Status prepared = runs_.PrepareProducer(index);
  AwaitOpen();
  while (!must_leave_.load(std::memory_order_acquire) && AwaitTurn(index) &&
         (prepared.ok() ? Produce(index) : EndStage(index, prepared))) {
  }
  {
    mutex_lock l(mu_);
    --working_;
    idle_must_leave_ = true;
    changed_.NotifyAll();
  }
  // 2. From here on the session may be destroyed.
  Leave();
}

void Producers::AwaitOpen() {
  mutex_lock l(mu_);
  while (!open_ && !stopping_) changed_.Wait(&mu_);
}

bool Producers::AwaitTurn(int index) {
  if (index < active_threads_.load(std::memory_order_relaxed)) return true;
  mutex_lock l(mu_);
  while (index >= active_threads_ && !stopping_ && !idle_must_leave_) {
    changed_.Wait(&mu_);
  }
  return index < active_threads_;
}

void Producers::TuneThreads() {
  const auto now = std::chrono::steady_clock::now();
  const int64_t records = records_;
  if (!periods_.MayEnd(now, records)) return;
  BufferStats stats;
  if (!runs_.ReadStats(&stats).ok()) {
    // The closing session, for example. The number stays as it is.
    tuner_.reset();
    return;
  }
  const std::optional<ProducerTuner::Period> period =
      periods_.End(now, records, stats, CpuMicros());
  if (!period.has_value()) return;
  const bool changes = tuner_->OnPeriod(*period);
  settled_ = tuner_->settled();
  if (changes) {
    mutex_lock l(mu_);
    active_threads_ = tuner_->producers();
    StartThreads(active_threads_);
    changed_.NotifyAll();
  } else if (tuner_->settled() && tuner_->producers() != reported_threads_) {
    reported_threads_ = tuner_->producers();
    LOG(INFO) << "Stage '" << options_.name() << "' has settled on "
              << reported_threads_ << " producer"
              << (reported_threads_ == 1 ? "" : "s") << " (of up to "
              << most_threads_ << ").";
  }
}

bool Producers::Produce(int index) {
  ++producing_;
  const auto cleanup = gtl::MakeCleanup([this] { --producing_; });
  const int64_t records_before = records_;
  const int64_t ends_before = ends_;
  PreparedRuns::Result result;
  int64_t micros = 0;
  const Status status = [&] {
    // In a profiler's trace, the run is an event on its producer's thread.
    const tsl::profiler::TraceMe trace([this] {
      return tsl::profiler::TraceMeEncode("StagedRun",
                                          {{"stage", options_.name()}});
    });
    return runs_.ProduceRecord(index, &result, &micros);
  }();
  if (result == PreparedRuns::Result::kRecord) {
    return CountRecord(index, ends_before, micros);
  }
  {
    mutex_lock l(mu_);
    if (stopping_) return false;
  }
  if (result == PreparedRuns::Result::kStale) return true;
  if (result == PreparedRuns::Result::kEnded) return false;
  if (status.ok()) return EndStage(index, NoRecordStatus());
  switch (outcomes_.Of(status)) {
    case RunOutcome::kEndOfData:
      return EndSource(index, records_before);
    case RunOutcome::kIgnored:
      return CountIgnored(index, status);
    default:
      return EndStage(index, status);
  }
}

bool Producers::CountRecord(int index, int64_t ends_before, int64_t micros) {
  // The first run of a thread prepares what later ones reuse.
  if (has_produced_[index]) {
    timed_records_.fetch_add(1, std::memory_order_relaxed);
    record_micros_.fetch_add(micros, std::memory_order_relaxed);
  }
  has_produced_[index] = true;
  records_.fetch_add(1, std::memory_order_relaxed);
  pauses_[index] = pauses_[index].zero();
  ignored_in_a_row_[index] = 0;
  has_closed_[index] = false;
  if (ends_before > ends_before_record_.load(std::memory_order_relaxed)) {
    ends_before_record_ = ends_before;
  }
  if (num_sources_ > 1) {
    mutex_lock l(mu_);
    ended_ops_.clear();
  }
  if (index == 0 && tuner_.has_value()) TuneThreads();
  return true;
}

bool Producers::CountIgnored(int index, const Status& status) {
  const int64_t ignored = ignored_.fetch_add(1) + 1;
  LOG_EVERY_N_SEC(WARNING, 1)
      << "Stage '" << options_.name() << "' ignored an error, because "
      << "ignored_exception_types contains its type; " << ignored << " so far. "
      << status;
  // A source that does nothing but fail must not take the processor.
  if (++ignored_in_a_row_[index] <= kIgnoredWithoutPause) return true;
  return Pause(NextPause(index, kLongestIgnoredPause));
}

bool Producers::EndSource(int index, int64_t records_before) {
  if (num_sources_ == 1) {
    return EndStage(index, OkStatus());
  }
  bool all_ended, run_again;
  {
    mutex_lock l(mu_);
    // After a record of another source, which may be the first one of other
    // data, this source may have data again.
    const bool is_current = records_ == records_before;
    run_again = !is_current && !ended_ops_.empty();
    // Wake the threads of other ended sources, which check again whether all
    // sources have ended.
    if (is_current && ended_ops_.insert(options_.fetch_ops(index)).second) {
      changed_.NotifyAll();
    }
    all_ended = ended_ops_.size() == num_sources_;
    if (all_ended) ended_ops_.clear();
  }
  if (all_ended) return EndStage(index, OkStatus());
  return run_again || Pause(kEndedSourcePeriod);
}

bool Producers::LetErrorsComeFirst(int64_t failures_before) {
  const auto deadline = std::chrono::steady_clock::now() + kErrorsFirst;
  mutex_lock l(mu_);
  while (producing_ > 1 && failures_ == failures_before && !stopping_ &&
         std::chrono::steady_clock::now() < deadline) {
    changed_.WaitFor(&mu_, std::chrono::milliseconds(1));
  }
  return failures_ != failures_before;
}

bool Producers::EndStage(int index, const Status& cause) {
  if (cause.ok() && LetErrorsComeFirst(failures_)) return true;
  ++ends_;
  if (!cause.ok()) ++failures_;
  if (!CloseBuffer(cause, /*is_logged=*/has_closed_[index])) return false;
  has_closed_[index] = true;
  // The next run waits for the stage, unless it is on a server.
  return runs_.AwaitsStage() || Pause(NextPause(index, kLongestPause));
}

std::chrono::milliseconds Producers::NextPause(
    int index, std::chrono::milliseconds longest) {
  const std::chrono::milliseconds pause = pauses_[index];
  pauses_[index] = std::min(2 * pause + std::chrono::milliseconds(1), longest);
  return pause;
}

bool Producers::Pause(std::chrono::milliseconds time) {
  mutex_lock l(mu_);
  if (!stopping_ && time > time.zero()) changed_.WaitFor(&mu_, time);
  return !stopping_;
}

bool Producers::AwaitsInitialization(const Status& cause) const {
  return errors::IsFailedPrecondition(cause) && records_ == 0;
}

bool Producers::CloseBuffer(const Status& cause, bool is_logged) {
  const Status status = runs_.Close(cause);
  // CANCELLED says that the session is closing or has been closed; then the
  // cause says the same in other words, for example that the server does not
  // know the session any more, and no step asks for it. A closing session
  // cancels its runs first, so CANCELLED as the cause needs no warning either.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not close its buffer: " << status
               << (cause.ok() ? "" : " The stage ended with an error: ")
               << (cause.ok() ? "" : cause.ToString());
  } else if (status.ok() && !cause.ok() && !errors::IsCancelled(cause) &&
             !is_logged && !AwaitsInitialization(cause)) {
    LOG(WARNING) << "Stage '" << options_.name() << "' ends with an error, "
                 << "which the step that takes its records will report: "
                 << cause;
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
  // A session that is closing, or has been closed, has cancelled its runs, and
  // with them the puts.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not cancel its buffer: " << status;
  }
  Leave();
}

void Producers::Stop() {
  // 1. Ask the threads to leave. Cancel the buffer only once, because another
  //    runner may use it later.
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
    if (!AwaitNobodyInside(patience)) {
      if (!stop_gave_up_) {
        LOG(WARNING) << "Stage '" << options_.name() << "' was stopped while "
                     << "its region is still running. The stage ends when that "
                     << "run ends or the session closes.";
      }
      stop_gave_up_ = true;
      return;
    }
    threads.swap(threads_);
    prepared_ = false;
    if (!session_gone_) session.swap(session_);
    if (session != nullptr) ++inside_;
  }
  // 3. Clean up, unless the closing session or another Stop does. Release the
  //    session last: this may be its last reference, and its destructor waits
  //    until inside_ is 0.
  threads.clear();
  runs_.RetireThreads();
  if (session != nullptr) {
    runs_.Release();
    Leave();
  }
}

void Producers::OnSessionClosing() {
  // 1. Ask the threads to leave, as Stop does. Another thread may be in Stop
  //    without having cancelled the buffer yet; in a closing session, it does
  //    no harm to cancel twice.
  {
    mutex_lock l(mu_);
    AskThreadsToLeave();
  }
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
    while (inside_ > 0) changed_.Wait(&mu_);
    threads.swap(threads_);
  }
  // The session goes last: this may be its last reference.
  threads.clear();
  runs_.RetireThreads();
  session_.reset();
}

PrefetchRunner::Stats Producers::GetStats() const {
  PrefetchRunner::Stats stats;
  stats.name = options_.name();
  stats.records = records_;
  stats.ignored = ignored_;
  stats.timed_records = timed_records_;
  stats.record_micros = record_micros_;
  stats.tunes_threads = options_.tune_threads();
  stats.threads_settled = settled_;
  mutex_lock l(mu_);
  stats.running = working_ > 0 && ends_before_record_ >= ends_;
  stats.threads = stats.running ? std::min<int>(working_, active_threads_) : 0;
  return stats;
}

Status Producers::ReadBuffer(BufferStats* stats) {
  {
    mutex_lock l(mu_);
    if (!prepared_ || stopping_ || session_gone_) {
      return errors::FailedPrecondition("Stage '", options_.name(),
                                        "' is not running.");
    }
    ++inside_;
  }
  const Status status = runs_.ReadStats(stats);
  Leave();
  return status;
}

void Producers::AskThreadsToLeave() {
  stopping_ = true;
  must_leave_.store(true, std::memory_order_release);
  changed_.NotifyAll();
}

void Producers::Leave() {
  mutex_lock l(mu_);
  if (--inside_ == 0) changed_.NotifyAll();
}

bool Producers::AwaitNobodyInside(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (inside_ > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.WaitFor(&mu_, left);
  }
  return true;
}

Status Producers::StoppedStatus() const {
  return errors::Cancelled("The runner of stage '", options_.name(),
                           "' was stopped before it had started.");
}

}  // namespace staging
}  // namespace tensorflow
