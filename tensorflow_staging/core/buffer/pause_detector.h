// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_PAUSE_DETECTOR_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_PAUSE_DETECTOR_H_

#include <cstdint>

namespace tensorflow {
namespace staging {

// Tells when a program pauses, as for an evaluation: when it takes no record
// for a second, and for eight times as long as it usually does.
//
// Times are those of any monotonic clock, in microseconds. Not thread-safe.
class PauseDetector {
 public:
  // Notes a take, from its call until it had its record. Returns whether the
  // program paused before.
  bool OnTake(int64_t began_micros, int64_t ended_micros);

  // From when on the program pauses if it takes no record. Must not be called
  // before the first take.
  int64_t PauseBegins() const { return last_take_micros_ + LongestGap(); }

 private:
  int64_t LongestGap() const;

  // When the last take ended, and how long the program takes from there to the
  // next one on average. 0 before there is one.
  int64_t last_take_micros_ = 0;
  int64_t mean_gap_micros_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_PAUSE_DETECTOR_H_
