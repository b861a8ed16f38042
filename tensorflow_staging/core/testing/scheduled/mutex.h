// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_MUTEX_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_MUTEX_H_

#include <algorithm>
#include <chrono>  // NOLINT
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

namespace tensorflow {
namespace scheduled {

// Threads that wait for the same.
class Waiters {
 public:
  // Returns whether the thread was woken before the time had passed.
  bool Wait(const char* what,
            std::chrono::nanoseconds time = std::chrono::nanoseconds::max()) {
    Scheduler* const scheduler = Scheduler::Current();
    SimulatedThread* const thread = scheduler->thread();
    threads_.push_back(thread);
    if (scheduler->Wait(what, time)) return true;
    const auto left = absl::c_find(threads_, thread);
    // It may have been woken after its time.
    if (left == threads_.end()) return true;
    threads_.erase(left);
    return false;
  }
  void WakeOne() {
    if (threads_.empty()) return;
    const auto one = threads_.begin() +
                     Scheduler::Current()->random().Below(threads_.size());
    SimulatedThread* const thread = *one;
    threads_.erase(one);
    Scheduler::Current()->Wake(thread);
  }
  void WakeAll() {
    for (SimulatedThread* thread : threads_) {
      Scheduler::Current()->Wake(thread);
    }
    threads_.clear();
  }
  void Clear() { threads_.clear(); }

 private:
  std::vector<SimulatedThread*> threads_;
};

// tensorflow::mutex. Outside of a scheduler there is one thread, which need not
// wait.
class TF_LOCKABLE Mutex {
 public:
  Mutex() = default;
  explicit Mutex(LinkerInitialized) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() TF_EXCLUSIVE_LOCK_FUNCTION() {
    Scheduler* const scheduler = BeginLock();
    if (scheduler == nullptr) return;
    while (holder_ != nullptr || shared_ > 0) waiters_.Wait("a mutex");
    holder_ = scheduler->thread();
  }
  void unlock() TF_UNLOCK_FUNCTION() {
    Scheduler* const scheduler = Scheduler::Current();
    if (scheduler == nullptr) return;
    CHECK(holder_ == scheduler->thread())
        << scheduler->thread()->name() << " unlocks what it has not locked";
    holder_ = nullptr;
    waiters_.WakeAll();
  }
  void lock_shared() TF_SHARED_LOCK_FUNCTION() {
    if (BeginLock() == nullptr) return;
    while (holder_ != nullptr) waiters_.Wait("a mutex");
    ++shared_;
  }
  void unlock_shared() TF_UNLOCK_FUNCTION() {
    if (Scheduler::Current() == nullptr) return;
    if (--shared_ == 0) waiters_.WakeAll();
  }

 private:
  // Returns the scheduler; null outside of one.
  Scheduler* BeginLock() {
    Scheduler* const scheduler = Scheduler::Current();
    if (scheduler == nullptr) return nullptr;
    scheduler->Point();
    Forget(*scheduler);
    CHECK(holder_ != scheduler->thread())
        << scheduler->thread()->name() << " locks what it has locked";
    return scheduler;
  }

  // A thread of an earlier scheduler that did not end may have locked a mutex that
  // outlives it.
  void Forget(const Scheduler& scheduler) {
    if (number_ == scheduler.number()) return;
    number_ = scheduler.number();
    holder_ = nullptr;
    shared_ = 0;
    waiters_.Clear();
  }

  int64_t number_ = 0;
  const SimulatedThread* holder_ = nullptr;
  int shared_ = 0;
  Waiters waiters_;
};

// What a scope has locked.
class LockOfScope {
 public:
  LockOfScope(const LockOfScope&) = delete;
  LockOfScope& operator=(const LockOfScope&) = delete;

 protected:
  explicit LockOfScope(Mutex& mu) : mu_(&mu) {}

  Mutex* const mu_;
};

// tensorflow::mutex_lock.
class TF_SCOPED_LOCKABLE MutexLock : public LockOfScope {
 public:
  explicit MutexLock(Mutex& mu) TF_EXCLUSIVE_LOCK_FUNCTION(mu)
      : LockOfScope(mu) {
    mu_->lock();
  }
  ~MutexLock() TF_UNLOCK_FUNCTION() { mu_->unlock(); }
};

// tensorflow::tf_shared_lock.
class TF_SCOPED_LOCKABLE SharedLock : public LockOfScope {
 public:
  explicit SharedLock(Mutex& mu) TF_SHARED_LOCK_FUNCTION(mu) : LockOfScope(mu) {
    mu_->lock_shared();
  }
  ~SharedLock() TF_UNLOCK_FUNCTION() { mu_->unlock_shared(); }
};

// staging::SteadyCondition. It wakes some threads that nobody has notified.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void Wait(Mutex* mu) { WaitFor(mu, std::chrono::nanoseconds::max()); }

  void WaitFor(Mutex* mu, std::chrono::nanoseconds time) {
    Random& random = Scheduler::Current()->random();
    if (random.OneIn(50)) {
      time = std::min(time, std::chrono::nanoseconds(random.Below(100000)));
    }
    mu->unlock();
    waiters_.Wait("a condition", time);
    mu->lock();
  }

  void NotifyOne() { waiters_.WakeOne(); }
  void NotifyAll() { waiters_.WakeAll(); }

 private:
  Waiters waiters_;
};

// tensorflow::Notification.
class Notification {
 public:
  Notification() = default;
  // Notify may go on in another thread.
  ~Notification() { MutexLock l(mu_); }
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;

  void Notify() {
    MutexLock l(mu_);
    CHECK(!notified_);
    notified_ = true;
    waiters_.WakeAll();
  }
  bool HasBeenNotified() const {
    MutexLock l(mu_);
    return notified_;
  }
  void WaitForNotification() {
    while (!HasBeenNotified()) waiters_.Wait("a notification");
  }

 private:
  mutable Mutex mu_;
  bool notified_ = false;
  Waiters waiters_;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_MUTEX_H_
