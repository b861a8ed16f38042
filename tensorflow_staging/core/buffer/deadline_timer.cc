// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/deadline_timer.h"

#include <algorithm>
#include <chrono>  // NOLINT
#include <limits>
#include <set>
#include <thread>  // NOLINT
#include <utility>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"

namespace tensorflow {
namespace staging {
namespace {

// Values of Core::planned_wake_ that are not points in time.
constexpr uint64_t kAwake = 0;
constexpr uint64_t kWhenNotified = std::numeric_limits<uint64_t>::max();

// Bounds a single wait, so that its duration is representable for any deadline.
constexpr uint64_t kLongestWaitMicros = uint64_t{3600} * 1000 * 1000;

uint64_t SteadyMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

class DeadlineTimer::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Env* env, std::string thread_name, ExpiredFn on_expired)
      : env_(env),
        thread_name_(std::move(thread_name)),
        on_expired_(std::move(on_expired)) {}

  Entry Add(uint64_t id, int64_t micros_from_now) TF_LOCKS_EXCLUDED(mu_) {
    const Entry entry{SteadyMicros() + static_cast<uint64_t>(std::max<int64_t>(
                                           0, micros_from_now)),
                      id};
    mutex_lock l(mu_);
    entries_.emplace(entry.deadline_micros, entry.id);
    if (thread_ == nullptr) {
      thread_.reset(env_->StartThread(
          ThreadOptions(), thread_name_,
          [core = this->shared_from_this()]() { core->Loop(); }));
    } else if (entry.deadline_micros < planned_wake_) {
      changed_.NotifyOne();
    }
    return entry;
  }

  void Remove(const Entry& entry) TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    entries_.erase({entry.deadline_micros, entry.id});
  }

  void Stop() TF_LOCKS_EXCLUDED(mu_) {
    std::unique_ptr<Thread> thread;
    bool inside_report;
    {
      mutex_lock l(mu_);
      stopping_ = true;
      thread = std::move(thread_);
      inside_report = loop_thread_ == std::this_thread::get_id();
      changed_.NotifyOne();
    }
    // Deleting a Thread joins it, and a thread cannot join itself. Inside a
    // report, another thread therefore joins this one after the report returns.
    if (inside_report) {
      env_->SchedClosure(
          [thread = std::move(thread)]() mutable { thread.reset(); });
    }
  }

 private:
  void Loop() TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    loop_thread_ = std::this_thread::get_id();
    // 1. Run until the timer is destroyed.
    while (!stopping_) {
      const uint64_t now = SteadyMicros();
      // 2. Report the earliest deadline if it has passed.
      if (!entries_.empty() && entries_.begin()->first <= now) {
        const uint64_t id = entries_.begin()->second;
        entries_.erase(entries_.begin());
        mu_.unlock();
        on_expired_(id);
        mu_.lock();
        continue;
      }
      // 3. Sleep until the next deadline, and publish the time in
      //    planned_wake_: Add wakes this thread only for an earlier deadline.
      //    A removal does not change the plan; the thread then wakes and finds
      //    nothing to report.
      if (entries_.empty()) {
        planned_wake_ = kWhenNotified;
        changed_.Wait(&mu_);
      } else {
        planned_wake_ =
            std::min(entries_.begin()->first, now + kLongestWaitMicros);
        changed_.WaitFor(&mu_, std::chrono::microseconds(planned_wake_ - now));
      }
      planned_wake_ = kAwake;
    }
  }

  Env* const env_;
  const std::string thread_name_;
  const ExpiredFn on_expired_;

  mutex mu_;
  SteadyCondition changed_;
  // (deadline, id), earliest first.
  std::set<std::pair<uint64_t, uint64_t>> entries_ TF_GUARDED_BY(mu_);
  // When the thread will next examine entries_ without being notified.
  uint64_t planned_wake_ TF_GUARDED_BY(mu_) = kAwake;
  bool stopping_ TF_GUARDED_BY(mu_) = false;
  std::thread::id loop_thread_ TF_GUARDED_BY(mu_);
  std::unique_ptr<Thread> thread_ TF_GUARDED_BY(mu_);
};

DeadlineTimer::DeadlineTimer(Env* env, std::string thread_name,
                             ExpiredFn on_expired)
    : core_(std::make_shared<Core>(env, std::move(thread_name),
                                   std::move(on_expired))) {}

DeadlineTimer::~DeadlineTimer() { core_->Stop(); }

DeadlineTimer::Entry DeadlineTimer::Add(uint64_t id, int64_t micros_from_now) {
  return core_->Add(id, micros_from_now);
}

void DeadlineTimer::Remove(const Entry& entry) { core_->Remove(entry); }

}  // namespace staging
}  // namespace tensorflow
