// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/region_threads.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/env.h"
#include "tensorflow_staging/core/framework/thread_name.h"

namespace tensorflow {
namespace staging {

void RegionThreads::AddProducer() {
  mutex_lock l(mu_);
  ++producers_;
}

std::function<void(RegionThreads::Closure)> RegionThreads::RunnerInsteadOf(
    const thread::ThreadPool& pool) {
  {
    mutex_lock l(mu_);
    beside_ = std::max(beside_, pool.NumThreads());
  }
  return [threads = shared_from_this()](Closure closure) {
    threads->Schedule(std::move(closure));
  };
}

void RegionThreads::Schedule(Closure closure) {
  {
    mutex_lock l(mu_);
    closures_.push_back(std::move(closure));
    if (!idle_.empty()) {
      CallIdleThread();
      return;
    }
    if (threads_ == producers_ + beside_) return;
    ++threads_;
  }
  Env::Default()->SchedClosure(
      [threads = shared_from_this()]() { threads->Work(); });
}

void RegionThreads::CallIdleThread() {
  // A thread that was called is idle no longer, so that each closure calls
  // another one: the first may be busy for long.
  Waiter* const waiter = idle_.back();
  idle_.pop_back();
  waiter->is_called = true;
  waiter->changed.notify_one();
}

void RegionThreads::Work() {
  // The threads that an iterator's ops start inherit the name and live longer,
  // so it names no stage.
  SetKernelThreadName("staging_region");
  while (true) {
    Closure closure;
    {
      mutex_lock l(mu_);
      if (closures_.empty()) {
        if (retired_) {
          --threads_;
          changed_.notify_all();
          return;
        }
        Waiter waiter;
        idle_.push_back(&waiter);
        while (!waiter.is_called) waiter.changed.wait(l);
        continue;
      }
      closure = std::move(closures_.front());
      closures_.pop_front();
      ++busy_;
      if (retired_) changed_.notify_all();
    }
    // No lock is alive here: an interpreter that has ended ends, in the middle of
    // the call, a thread that calls Python.
    closure();
    // Destroys what the closure owns, which may call this object.
    closure = nullptr;
    mutex_lock l(mu_);
    --busy_;
  }
}

void RegionThreads::Retire() {
  mutex_lock l(mu_);
  retired_ = true;
  while (!idle_.empty()) CallIdleThread();
  while (threads_ > busy_) changed_.wait(l);
}

}  // namespace staging
}  // namespace tensorflow
