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

// Reports deadlines that nobody removed in time.
//
// Goal: a deadline that is nearly always removed before it passes costs next to
// nothing. Adding and removing are O(log n) under one short lock; the thread is
// woken by an addition only if the new deadline comes before its next planned
// wake, and never by a removal. The thread starts with the first addition, so a
// timer that is never used has none.
//
// Deadlines are measured on a clock that does not jump. They are reported one
// at a time, earliest first, on the timer's own thread, with no lock held.
//
// Thread-safe. Destruction waits for a report in progress, reports nothing
// after that, and is allowed inside a report, where it does not wait for
// itself.
class DeadlineTimer {
 public:
  // What Remove needs to find an addition again.
  struct Entry {
    uint64_t deadline_micros;
    uint64_t id;
  };

  // Called with the id given to Add.
  using ExpiredFn = std::function<void(uint64_t id)>;

  // The thread will be named `thread_name`. `env` must outlive the timer.
  DeadlineTimer(Env* env, std::string thread_name, ExpiredFn on_expired);
  ~DeadlineTimer();

  // Asks for a report of `id` in `micros_from_now` microseconds. An id may be
  // in the timer only once at a time.
  Entry Add(uint64_t id, int64_t micros_from_now);

  // Withdraws an addition. Does nothing if its report has begun: that report
  // may be running now, or may still be about to run.
  void Remove(const Entry& entry);

 private:
  class Core;

  // Shared with the thread, which may return into the core after a report has
  // destroyed the timer.
  const std::shared_ptr<Core> core_;

  TF_DISALLOW_COPY_AND_ASSIGN(DeadlineTimer);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_DEADLINE_TIMER_H_
