// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/prefetch_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>  // NOLINT
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/thread_name.h"

namespace tensorflow {
namespace staging {
namespace {

// How long Stop waits for a thread that the cancelled buffer does not wake.
// tf.train.Coordinator.join looks after 2, then after 4 seconds, and is to be
// back within 5; this is before its first look.
constexpr std::chrono::milliseconds kStopPatience(1500);
// How often a closing session that cannot go on says what it is waiting for.
constexpr std::chrono::seconds kClosingReportPeriod(10);
// How often a source that has ended is asked again, while another one of the
// same stage goes on: it may have been initialised anew.
constexpr std::chrono::milliseconds kEndedSourcePeriod(100);
// The longest pause of a thread that closes the buffer over and over.
constexpr std::chrono::milliseconds kLongestPause(100);

std::set<int> Codes(const protobuf::RepeatedField<int>& codes) {
  return std::set<int>(codes.begin(), codes.end());
}

// The code with which an op of the staged part failed. The executor replaces
// UNAVAILABLE, so that nobody takes it for a lost worker, and leaves no other
// trace of it than this text.
int RaisedCode(const Status& status) {
  const bool replaced =
      errors::IsInternal(status) &&
      absl::StrContains(status.message(),
                        "originally returned UnavailableError, and was "
                        "replaced by InternalError");
  return replaced ? error::UNAVAILABLE : status.raw_code();
}

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
  return OkStatus();
}

}  // namespace

// The state of a runner, and what its threads do.
//
// Whoever calls the session is counted in inside_ meanwhile: a thread during
// its whole life, Start and Stop during theirs. Nobody enters once
// session_gone_ is set, and the session's closing waits until inside_ is 0, or
// leaves them a share in the session.
class PrefetchRunner::Crew : public std::enable_shared_from_this<Crew> {
 public:
  Crew(std::shared_ptr<Session> session, const PrefetchRunnerOptions& options)
      : session_(std::move(session)),
        options_(options),
        closed_codes_(Codes(options.closed_exceptions())),
        ignored_codes_(Codes(options.ignored_exceptions())),
        sources_(std::set<std::string>(options.fetch_ops().begin(),
                                       options.fetch_ops().end())
                     .size()),
        pauses_(options.fetch_ops_size()) {}

  Status Start() TF_LOCKS_EXCLUDED(mu_);
  void Stop() TF_LOCKS_EXCLUDED(mu_);
  void OnSessionClosing() TF_LOCKS_EXCLUDED(mu_);
  // Of a session that is gone: waits for those who are inside, joins them, and
  // lets go of it.
  void Disband() TF_LOCKS_EXCLUDED(mu_);
  Stats GetStats() const TF_LOCKS_EXCLUDED(mu_);

  // Whether every thread has been joined, or none ever started.
  bool Disbanded() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return threads_.empty();
  }

 private:
  using Handle = Session::CallableHandle;

  // The runs of a stage, prepared once.
  struct Callables {
    Handle resume;
    Handle cancel;
    Handle close;
    // Yields the values for named_feed_input_tensors, if there are any.
    Handle feeds;
    // By entry of fetch_ops. Takes what `feeds` yields.
    std::vector<Handle> fetches;
  };

  Status MakeCallables() TF_LOCKS_EXCLUDED(mu_);
  Status MakeCallable(const CallableOptions& options, Handle* handle)
      TF_LOCKS_EXCLUDED(mu_);
  Status Run(Handle handle, const std::vector<Tensor>& feeds,
             std::vector<Tensor>* fetches);
  // The same for a callable without fetches.
  Status RunOp(Handle handle, const std::vector<Tensor>& feeds = {});

  // What thread `index` does.
  void Work(int index) TF_LOCKS_EXCLUDED(mu_);
  Status ProduceRecord(int index);
  // What the outcome of a run of thread `index` means. Return whether to go on.
  bool Judge(int index, const Status& status) TF_LOCKS_EXCLUDED(mu_);
  bool CountRecord(int index) TF_LOCKS_EXCLUDED(mu_);
  bool CountIgnored(const Status& status);
  // `cause` is OK at the end of the data.
  bool EndStage(int index, const Status& cause) TF_LOCKS_EXCLUDED(mu_);
  // For EndStage of a restartable stage: whether all its sources have ended.
  bool AllSourcesEnded(int index) TF_LOCKS_EXCLUDED(mu_);

  // Waits until the time has passed, a source has ended, or the runner is being
  // stopped. Returns whether to go on.
  bool Pause(std::chrono::milliseconds time) TF_LOCKS_EXCLUDED(mu_);
  // Returns whether the buffer could be reached.
  bool CloseBuffer(const Status& cause);
  // Wakes the puts that wait for room, if the buffer can be reached.
  void CancelBuffer() TF_LOCKS_EXCLUDED(mu_);

  // Ends what began with ++inside_.
  void Leave() TF_LOCKS_EXCLUDED(mu_);
  // Waits until nobody is inside. Returns whether that came true in time.
  bool AwaitNobodyInside(mutex_lock* l, std::chrono::milliseconds patience)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Status StoppedStatus() const {
    return errors::Cancelled("The prefetcher of stage '", options_.name(),
                             "' was stopped before it had started.");
  }

  // Used only by those who are counted in inside_; null once none of them can
  // come any more.
  std::shared_ptr<Session> session_;
  const PrefetchRunnerOptions options_;
  const std::set<int> closed_codes_;
  const std::set<int> ignored_codes_;
  // How many different fetch_ops there are.
  const size_t sources_;

  // By thread, used by it alone. A restartable stage waits in its buffer after
  // it has closed it; should the graph lack the op that does so, pauses that
  // grow from one record to the next keep its threads from spinning.
  std::vector<std::chrono::milliseconds> pauses_;

  // Written by Start before there is any other reader: the threads start later,
  // and the others look at prepared_ first.
  Callables callables_;

  // Whether the threads are to leave after the run that they are in. Read in
  // each round, therefore without the lock.
  std::atomic<bool> enough_{false};
  std::atomic<int64_t> records_{0};
  std::atomic<int64_t> ignored_{0};

  mutable mutex mu_;
  condition_variable changed_;
  bool started_ TF_GUARDED_BY(mu_) = false;
  bool stopping_ TF_GUARDED_BY(mu_) = false;
  // Whether Stop, or the session's closing, has given up waiting; the next Stop
  // does not wait again.
  bool stop_gave_up_ TF_GUARDED_BY(mu_) = false;
  bool session_gone_ TF_GUARDED_BY(mu_) = false;
  // Whether callables_ is complete and not yet released.
  bool prepared_ TF_GUARDED_BY(mu_) = false;
  // All that has to be released in the session.
  std::vector<Handle> handles_ TF_GUARDED_BY(mu_);
  int inside_ TF_GUARDED_BY(mu_) = 0;
  // Threads that may still produce records.
  int working_ TF_GUARDED_BY(mu_) = 0;
  // The first error that was neither closing nor ignored.
  Status cause_ TF_GUARDED_BY(mu_);
  // Of a restartable stage: the fetch_ops that have reached the end of their
  // data since the last record.
  std::set<std::string> ended_ops_ TF_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Thread>> threads_ TF_GUARDED_BY(mu_);
};

Status PrefetchRunner::Crew::Start() {
  {
    mutex_lock l(mu_);
    if (stopping_ || session_gone_) return StoppedStatus();
    if (started_) {
      return errors::FailedPrecondition("The prefetcher of stage '",
                                        options_.name(),
                                        "' has been started already.");
    }
    started_ = true;
    ++inside_;
  }
  Status status = MakeCallables();
  if (status.ok()) status = RunOp(callables_.resume);
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
            [crew = shared_from_this(), i]() { crew->Work(i); }));
      }
    }
  }
  if (stopped) {
    // The cancellation by Stop may have come before the buffer was opened.
    CancelBuffer();
    status = StoppedStatus();
  }
  Leave();
  return status;
}

void PrefetchRunner::Crew::Work(int index) {
  SetStageThreadName(options_.name());
  // 1. Produce records until there is a reason to leave.
  while (!enough_.load(std::memory_order_acquire) &&
         Judge(index, ProduceRecord(index))) {
  }
  // 2. The last one to leave says in the buffer why no more records come,
  //    unless Stop has said so.
  bool close;
  Status cause;
  {
    mutex_lock l(mu_);
    close = --working_ == 0 && !stopping_ && !options_.restartable();
    cause = cause_;
  }
  if (close) CloseBuffer(cause);
  // 3. From here on the session may die.
  Leave();
}

Status PrefetchRunner::Crew::ProduceRecord(int index) {
  std::vector<Tensor> feeds;
  if (!options_.named_feed_input_tensors().empty()) {
    TF_RETURN_IF_ERROR(Run(callables_.feeds, {}, &feeds));
  }
  return RunOp(callables_.fetches[index], feeds);
}

bool PrefetchRunner::Crew::Judge(int index, const Status& status) {
  if (status.ok()) return CountRecord(index);
  const int code = RaisedCode(status);
  {
    mutex_lock l(mu_);
    if (stopping_) return false;
  }
  if (closed_codes_.count(code) > 0) return EndStage(index, OkStatus());
  if (ignored_codes_.count(code) > 0) return CountIgnored(status);
  // A closing session cancels its steps just before it says that it closes.
  if (!errors::IsCancelled(status)) {
    LOG(WARNING) << "Stage '" << options_.name() << "' ends with an error, "
                 << "which the step that takes its records will report: "
                 << status;
  }
  return EndStage(index, status);
}

bool PrefetchRunner::Crew::CountRecord(int index) {
  records_.fetch_add(1, std::memory_order_relaxed);
  pauses_[index] = pauses_[index].zero();
  if (sources_ > 1 && options_.restartable()) {
    mutex_lock l(mu_);
    ended_ops_.clear();
  }
  return true;
}

bool PrefetchRunner::Crew::CountIgnored(const Status& status) {
  const int64_t ignored = ignored_.fetch_add(1) + 1;
  LOG_EVERY_N_SEC(WARNING, 1)
      << "Stage '" << options_.name() << "' ignored an error, as told by "
      << "ignored_exception_types; " << ignored << " so far. " << status;
  return true;
}

bool PrefetchRunner::Crew::EndStage(int index, const Status& cause) {
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

bool PrefetchRunner::Crew::AllSourcesEnded(int index) {
  mutex_lock l(mu_);
  // The others look again whether they have ended, too.
  if (ended_ops_.insert(options_.fetch_ops(index)).second) {
    changed_.notify_all();
  }
  if (ended_ops_.size() < sources_) return false;
  ended_ops_.clear();
  return true;
}

bool PrefetchRunner::Crew::Pause(std::chrono::milliseconds time) {
  mutex_lock l(mu_);
  if (!stopping_ && time > time.zero()) changed_.wait_for(l, time);
  return !stopping_;
}

bool PrefetchRunner::Crew::CloseBuffer(const Status& cause) {
  const Status status =
      RunOp(callables_.close, {Tensor(static_cast<int32>(cause.raw_code())),
                               Tensor(tstring(cause.message()))});
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not close its buffer: " << status;
  }
  return status.ok();
}

void PrefetchRunner::Crew::CancelBuffer() {
  {
    mutex_lock l(mu_);
    if (!prepared_ || session_gone_) return;
    ++inside_;
  }
  const Status status = RunOp(callables_.cancel);
  // A closing session has woken its steps by itself.
  if (!status.ok() && !errors::IsCancelled(status)) {
    LOG(ERROR) << "Stage '" << options_.name()
               << "' could not cancel its buffer: " << status;
  }
  Leave();
}

void PrefetchRunner::Crew::Stop() {
  // 1. Have the threads leave. The buffer is cancelled once only: later on
  //    another runner may be at work there.
  bool first;
  std::chrono::milliseconds patience = kStopPatience;
  {
    mutex_lock l(mu_);
    first = !stopping_;
    stopping_ = true;
    enough_.store(true, std::memory_order_release);
    changed_.notify_all();
    if (stop_gave_up_) patience = std::chrono::milliseconds(0);
  }
  if (first) CancelBuffer();
  // 2. Wait until they have left.
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Handle> handles;
  std::shared_ptr<Session> session;
  {
    mutex_lock l(mu_);
    if (!AwaitNobodyInside(&l, patience)) {
      if (!stop_gave_up_) {
        LOG(WARNING) << "Stage '" << options_.name() << "' was stopped while "
                     << "its staged part is still running. It ends when that "
                     << "run does, or when the session closes.";
      }
      stop_gave_up_ = true;
      return;
    }
    threads.swap(threads_);
    handles.swap(handles_);
    prepared_ = false;
    if (!session_gone_) session.swap(session_);
    if (session != nullptr) ++inside_;
  }
  // 3. Clean up, unless the session or another Stop does. The session goes
  //    last: this may be its last reference, whose end waits for those inside.
  threads.clear();
  if (session != nullptr) {
    for (Handle handle : handles) {
      session->ReleaseCallable(handle).IgnoreError();
    }
    Leave();
  }
}

void PrefetchRunner::Crew::OnSessionClosing() {
  // 1. As Stop does. Another thread may be in Stop, and may not have got to
  //    cancelling the buffer; doing it twice is no harm in a closing session.
  {
    mutex_lock l(mu_);
    stopping_ = true;
    enough_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  CancelBuffer();
  // 2. Nobody enters any more; wait for those who are inside. With a share in
  //    the session they may stay longer than that: it lives as long as they.
  {
    mutex_lock l(mu_);
    session_gone_ = true;
    const bool shares = session_.use_count() > 0;
    while (
        !AwaitNobodyInside(&l, shares ? kStopPatience : kClosingReportPeriod)) {
      LOG(WARNING) << "The session is closing while the staged part of stage '"
                   << options_.name()
                   << "' is still running, in code that cannot be cancelled. "
                   << (shares ? "It is kept until that run ends."
                              : "It waits for the end of that run.");
      if (!shares) continue;
      stop_gave_up_ = true;
      Env::Default()->SchedClosure(
          [crew = shared_from_this()]() { crew->Disband(); });
      return;
    }
  }
  Disband();
}

void PrefetchRunner::Crew::Disband() {
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

PrefetchRunner::Stats PrefetchRunner::Crew::GetStats() const {
  Stats stats;
  stats.name = options_.name();
  stats.records = records_;
  stats.ignored = ignored_;
  mutex_lock l(mu_);
  stats.running = working_ > 0;
  return stats;
}

Status PrefetchRunner::Crew::MakeCallables() {
  // What steers the buffer does not wait, and has to go on where code that
  // cannot be cancelled holds every thread of the session: it runs in the
  // thread that asks.
  RunOptions steering;
  steering.set_inter_op_thread_pool(-1);
  steering.set_timeout_in_ms(options_.run_options().timeout_in_ms());

  CallableOptions resume;
  *resume.mutable_run_options() = steering;
  resume.add_target(options_.resume_op());
  TF_RETURN_IF_ERROR(MakeCallable(resume, &callables_.resume));

  CallableOptions cancel;
  *cancel.mutable_run_options() = steering;
  cancel.add_target(options_.cancel_op());
  TF_RETURN_IF_ERROR(MakeCallable(cancel, &callables_.cancel));

  CallableOptions close;
  *close.mutable_run_options() = steering;
  close.add_feed(options_.error_code_tensor());
  close.add_feed(options_.error_message_tensor());
  close.add_target(options_.close_op());
  TF_RETURN_IF_ERROR(MakeCallable(close, &callables_.close));

  // The staged part runs with the options of the stage, such as its thread
  // pool. The order of a protobuf map is not fixed; that of the feeds has to
  // be.
  CallableOptions fetch;
  *fetch.mutable_run_options() = options_.run_options();
  if (!options_.named_feed_input_tensors().empty()) {
    CallableOptions feeds;
    *feeds.mutable_run_options() = options_.run_options();
    const std::map<std::string, std::string> ordered(
        options_.named_feed_input_tensors().begin(),
        options_.named_feed_input_tensors().end());
    for (const auto& [fed, value] : ordered) {
      feeds.add_fetch(value);
      fetch.add_feed(fed);
    }
    TF_RETURN_IF_ERROR(MakeCallable(feeds, &callables_.feeds));
  }

  // Threads with the same op share a callable.
  std::map<std::string, Handle> made;
  for (const std::string& op : options_.fetch_ops()) {
    auto it = made.find(op);
    if (it == made.end()) {
      fetch.clear_target();
      fetch.add_target(op);
      Handle handle;
      TF_RETURN_IF_ERROR(MakeCallable(fetch, &handle));
      it = made.emplace(op, handle).first;
    }
    callables_.fetches.push_back(it->second);
  }

  mutex_lock l(mu_);
  prepared_ = true;
  return OkStatus();
}

Status PrefetchRunner::Crew::MakeCallable(const CallableOptions& options,
                                          Handle* handle) {
  TF_RETURN_IF_ERROR(session_->MakeCallable(options, handle));
  mutex_lock l(mu_);
  handles_.push_back(*handle);
  return OkStatus();
}

Status PrefetchRunner::Crew::Run(Handle handle,
                                 const std::vector<Tensor>& feeds,
                                 std::vector<Tensor>* fetches) {
  // Not used, but a session writes to it unasked if the run is traced or the
  // session builds a cost model.
  RunMetadata metadata;
  return session_->RunCallable(handle, feeds, fetches, &metadata);
}

Status PrefetchRunner::Crew::RunOp(Handle handle,
                                   const std::vector<Tensor>& feeds) {
  std::vector<Tensor> nothing;
  return Run(handle, feeds, &nothing);
}

void PrefetchRunner::Crew::Leave() {
  mutex_lock l(mu_);
  if (--inside_ == 0) changed_.notify_all();
}

bool PrefetchRunner::Crew::AwaitNobodyInside(
    mutex_lock* l, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (inside_ > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.wait_for(*l, left);
  }
  return true;
}

Status PrefetchRunner::Create(std::shared_ptr<Session> session,
                              const PrefetchRunnerOptions& options,
                              std::unique_ptr<PrefetchRunner>* runner) {
  TF_RETURN_IF_ERROR(CheckOptions(options));
  Session* const observed = session.get();
  auto crew = std::make_shared<Crew>(std::move(session), options);
  const SessionObserverId observer_id =
      ObserveSession(observed, [crew]() { crew->OnSessionClosing(); });
  runner->reset(new PrefetchRunner(std::move(crew), observer_id));
  return OkStatus();
}

PrefetchRunner::PrefetchRunner(std::shared_ptr<Crew> crew,
                               SessionObserverId observer_id)
    : crew_(std::move(crew)), observer_id_(observer_id) {}

PrefetchRunner::~PrefetchRunner() {
  crew_->Stop();
  // Threads that Stop left behind are joined when the session closes.
  if (crew_->Disbanded()) StopObservingSession(observer_id_);
}

Status PrefetchRunner::Start() { return crew_->Start(); }

void PrefetchRunner::Stop() { crew_->Stop(); }

PrefetchRunner::Stats PrefetchRunner::GetStats() const {
  return crew_->GetStats();
}

}  // namespace staging
}  // namespace tensorflow
