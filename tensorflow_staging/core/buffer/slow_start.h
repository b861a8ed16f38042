// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_SLOW_START_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_SLOW_START_H_

#include <algorithm>
#include <cstdint>

namespace tensorflow {
namespace staging {

// Lets a buffer of many records fill without taking from the steps.
//
// While a buffer fills, its producers compute more records than steps take. On
// cores that are busy, the steps pay for them (benchmarks/results.md). So,
// until the buffer has room for its capacity, it has room for
//   * as many records as its capacity allows before the first take, and while
//     the program pauses, because no step needs the cores then. What it has
//     room for does not fall below what it holds afterwards;
//   * kLeastRecords after the first take;
//   * one more after every kTakesPerRecord takes, so a step pays for no more
//     than that part of a record;
//   * twice as many if a take has waited, and a put had waited for room before,
//     because more records would have helped.
//
// The name and the doubling are those of TCP, which has to find how much it may
// send ahead (RFC 5681, section 3.1).
//
// Not thread-safe.
class SlowStart {
 public:
  // A buffer of at most that many records fills at once.
  static constexpr int64_t kLeastRecords = 4;

  // Chosen so that filling takes less than 1 % of a step, as long as a record
  // takes at most a third of its time.
  static constexpr int64_t kTakesPerRecord = 32;

  explicit SlowStart(int64_t capacity) : capacity_(capacity) {}

  // Whether the buffer may ever have less room than its capacity.
  bool active() const { return room_ < capacity_; }

  // How many records the buffer may hold now.
  int64_t room() const {
    return fills_freely_ ? capacity_ : std::min(room_, capacity_);
  }

  // Notes that a put waits for room.
  void OnFull() { was_full_ = true; }

  // Notes that a take found no record, and has waited.
  void OnTakeWaited() {
    CountTake(/*held=*/0);
    if (was_full_ && active()) room_ *= 2;
    was_full_ = false;
  }

  // Notes that a take has left `left` records in the buffer.
  void OnTake(int64_t left) { CountTake(left + 1); }

  // Notes that the program pauses.
  void OnPause() { fills_freely_ = true; }

  // Gives the buffer room for its capacity at once.
  void End() { room_ = capacity_; }

 private:
  // Notes that a take found `held` records.
  void CountTake(int64_t held) {
    if (fills_freely_) {
      fills_freely_ = false;
      was_full_ = false;
      room_ = std::max(room_, held);
    }
    if (++takes_ % kTakesPerRecord == 0 && active()) ++room_;
  }

  int64_t capacity_;
  int64_t room_ = kLeastRecords;
  bool fills_freely_ = true;
  // Whether a put has waited for room since a take last waited.
  bool was_full_ = false;
  int64_t takes_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_SLOW_START_H_
