// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_DEADLINE_TIMER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_DEADLINE_TIMER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/macros.h"

namespace tensorflow {
namespace staging {

// Reports deadlines that pass before they are removed.
//
// Goal: a deadline costs next to nothing if it is removed before it passes, as
// nearly all are. Add and Remove take O(log n) under one short lock. Add wakes
// the thread only for a deadline before the thread's next planned wake; Remove
// never wakes it. The first Add starts the thread, so an unused timer has none.
//
// The timer uses a monotonic clock. It reports deadlines one at a time,
// earliest first, on its own thread, with no lock held.
//
// Thread-safe. The destructor waits for a report in progress, and no report
// follows it. A report may destroy the timer; the destructor then does not wait
// for that report.
class DeadlineTimer {
 public:
  // Identifies an added deadline for Remove.
  struct Entry {
    uint64_t deadline_micros;
    uint64_t id;
  };

  // Receives the id that was given to Add.
  using ExpiredFn = std::function<void(uint64_t id)>;

  // Names the thread `thread_name`. `env` must outlive the timer.
  DeadlineTimer(Env* env, std::string thread_name, ExpiredFn on_expired);
  ~DeadlineTimer();

  // Schedules a report of `id` in `micros_from_now` microseconds. An id may be
  // in the timer at most once at a time.
  Entry Add(uint64_t id, int64_t micros_from_now);

  // Removes a deadline, unless the timer has already chosen to report it. That
  // report may have ended, may be running, or may be about to run.
  void Remove(const Entry& entry);

 private:
  class Core;

  // Shared with the thread, which returns into the core even if a report has
  // destroyed the timer.
  const std::shared_ptr<Core> core_;

  TF_DISALLOW_COPY_AND_ASSIGN(DeadlineTimer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_DEADLINE_TIMER_H_
