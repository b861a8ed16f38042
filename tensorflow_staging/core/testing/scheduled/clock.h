// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CLOCK_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CLOCK_H_

#include <chrono>  // NOLINT

#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

namespace tensorflow {
namespace scheduled {

// std::chrono::steady_clock: the scheduler's time.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static time_point now() {
    const Scheduler* const scheduler = Scheduler::Current();
    return time_point(scheduler == nullptr ? duration() : scheduler->now());
  }
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CLOCK_H_
