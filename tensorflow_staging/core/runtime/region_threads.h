// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_REGION_THREADS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_REGION_THREADS_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// The threads that run the ops of one source's region if the region may call
// Python, so that it needs none of the session's inter-op threads.
//
// A closure waits only while all threads are busy and there are as many as
// allowed. Threads start when they are first needed, and do not spin: they
// would take the cores from the step. No more are allowed than the producers
// need, and of several that wait, the last to begin is called: where ten
// threads took the closures of one producer by turns, steps that computed
// beside it took 1.04 times as long.
//
// Whoever may schedule shares ownership, also after Retire: a dataset's
// iterator keeps the means to run its functions, and lives longer than the
// stage. No thread is joined, since the last owner may be one of the closures.
//
// Thread-safe. Must be created by Create.
class RegionThreads : public std::enable_shared_from_this<RegionThreads> {
 public:
  using Closure = std::function<void()>;

  // Allows one thread for each producer.
  static std::shared_ptr<RegionThreads> Create(int producers) {
    return std::shared_ptr<RegionThreads>(new RegionThreads(producers));
  }

  RegionThreads(const RegionThreads&) = delete;
  RegionThreads& operator=(const RegionThreads&) = delete;

  // Allows one more, for one more producer.
  void AddProducer() TF_LOCKS_EXCLUDED(mu_);

  // Returns what schedules closures here. Allows, beside a thread for each
  // producer, as many threads as `pool` has, if fewer were allowed before: as
  // many as the region could occupy there, for example with the functions of a
  // dataset that run ahead.
  std::function<void(Closure)> RunnerInsteadOf(const thread::ThreadPool& pool)
      TF_LOCKS_EXCLUDED(mu_);

  // Runs the closure in one of the threads, in the order of the calls. At least
  // one thread must be allowed.
  void Schedule(Closure closure) TF_LOCKS_EXCLUDED(mu_);

  // Ends the threads that have no work, and waits for that. The others end when
  // no closure waits any more. Closures that are scheduled later still run, in
  // threads that end after them.
  void Retire() TF_LOCKS_EXCLUDED(mu_);

  // Returns how many threads there are.
  int NumThreads() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return threads_;
  }

  // Returns how many of them wait for work.
  int NumIdleThreads() const TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    return idle_.size();
  }

 private:
  explicit RegionThreads(int producers) : producers_(producers) {}

  // A thread that waits for work, until it is called.
  struct Waiter {
    bool is_called = false;
    condition_variable changed;
  };

  // The body of a thread.
  void Work() TF_LOCKS_EXCLUDED(mu_);
  // Wakes the thread that was the last to begin to wait.
  void CallIdleThread() TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable mutex mu_;
  // Notified when a thread ends, and after retired_ is set when it begins a
  // closure.
  condition_variable changed_;
  std::deque<Closure> closures_ TF_GUARDED_BY(mu_);
  // How many threads are allowed: for the producers, and beside them.
  int producers_ TF_GUARDED_BY(mu_);
  int beside_ TF_GUARDED_BY(mu_) = 0;
  int threads_ TF_GUARDED_BY(mu_) = 0;
  // The threads that wait and have not been called yet, in the order in which
  // they began to.
  std::vector<Waiter*> idle_ TF_GUARDED_BY(mu_);
  // Threads inside a closure.
  int busy_ TF_GUARDED_BY(mu_) = 0;
  bool retired_ TF_GUARDED_BY(mu_) = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_REGION_THREADS_H_
