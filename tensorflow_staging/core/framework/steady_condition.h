// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_STEADY_CONDITION_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_STEADY_CONDITION_H_

#include <chrono>              // NOLINT
#include <condition_variable>  // NOLINT

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// A condition variable whose timed waits do not notice when someone sets the
// system's clock. Those of tensorflow::condition_variable end at a time of that
// clock: after a jump back by an hour, a wait of a second lasts an hour longer,
// and while the clock stands ahead of its former time, each wait ends at once.
//
// Like any condition variable, it may wake a thread that nobody has notified.
class SteadyCondition {
 public:
  SteadyCondition() = default;

  SteadyCondition(const SteadyCondition&) = delete;
  SteadyCondition& operator=(const SteadyCondition&) = delete;

  // Does not use wait() of the C++ library, whose symbol is newer than the
  // systems that the wheel supports.
  void Wait(mutex* mu) TF_EXCLUSIVE_LOCKS_REQUIRED(*mu) {
    WaitFor(mu, std::chrono::hours(1));
  }

  void WaitFor(mutex* mu, std::chrono::nanoseconds time)
      TF_EXCLUSIVE_LOCKS_REQUIRED(*mu) {
    changed_.wait_for(*mu, time);
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  // wait_for of the C++ library uses the steady clock.
  std::condition_variable_any changed_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_STEADY_CONDITION_H_
