// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_STEP_TIMES_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_STEP_TIMES_H_

#include <cstdint>

namespace tensorflow {
namespace staging {

// How long a step takes: the time from one take of a buffer to the next, and
// how much of it the take waited. Leaves out what comes before the first take,
// where the session prepares itself, and the pauses of the program, as for an
// evaluation: it pauses when it takes no record for a second, and for eight
// times as long as it usually does, if that is known.
//
// Times are those of any monotonic clock, in microseconds. Not thread-safe.
class StepTimes {
 public:
  // Notes a take, from its call until it had its record. Returns whether the
  // program paused before.
  bool OnTake(int64_t began_micros, int64_t ended_micros);

  // From when on the program pauses if it takes no record. Must not be called
  // before the first take.
  int64_t PauseBegins() const { return last_micros_ + LongestGap(); }

  int64_t count() const { return count_; }
  int64_t total_micros() const { return total_micros_; }
  int64_t wait_micros() const { return wait_micros_; }

 private:
  int64_t LongestGap() const;

  // When the last take ended, and how long the program takes from there to the
  // next one on average. 0 before there is one.
  int64_t last_micros_ = 0;
  int64_t mean_gap_micros_ = 0;

  int64_t count_ = 0;
  int64_t total_micros_ = 0;
  int64_t wait_micros_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_STEP_TIMES_H_
