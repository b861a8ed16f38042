// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_CAPACITY_TUNER_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_CAPACITY_TUNER_H_

#include <cstdint>
#include <limits>
#include <optional>

namespace tensorflow {
namespace staging {

// Chooses the capacity of a buffer that tunes itself.
//
// A buffer evens out the variation of steps and of producers. A larger one
// helps exactly if it is full at times and empty at other times: if it is never
// full, the producers are too slow, and if it is never empty, it is large
// enough. tf.data's PrefetchAutotuner grows by the same observation, but each
// time that a buffer which was full is empty, however short the wait, and it
// never shrinks.
//
// The capacity is 4 at first, and never smaller. Where a record takes about as long
// as a step, a buffer of one record lets the producer and the step wait for each
// other all the time: where both computed 3 ms, on two cores, a step took 3.56 ms
// with a capacity of 1, 3.41 with 2, 3.30 with 4, and no less with more. The waits
// that count below do not show most of that; the cause may be that a woken thread
// shares the other's core at first.
//   * It doubles if takes have waited for more than 1 % of the time, and the
//     buffer was full both before and after those waits. What fills while the
//     program pauses, as for an evaluation, does not count.
//   * It halves if, over many takes, at least half of the buffer was never
//     needed. If a smaller capacity turns out to be too small, it takes four
//     times as many takes until the next attempt.
//   * It has settled if it has not changed for many takes.
//
// Times are those of any monotonic clock, in microseconds. Not thread-safe.
class CapacityTuner {
 public:
  static constexpr int64_t kLeastCapacity = 4;

  // After how many takes without a change the capacity has settled.
  static constexpr int64_t kTakesToSettle = 1000;

  int64_t capacity() const { return capacity_; }

  bool settled() const { return takes_since_change_ >= kTakesToSettle; }

  // From here on another buffer goes on with what was found.
  void Restart();

  // Notes that the buffer holds capacity() records, and that another record
  // waits.
  void OnFull(int64_t now_micros);

  // Notes that a take found no record, and has waited.
  void OnTakeWaited(int64_t waited_micros);

  // Notes that a take has left `left` records in the buffer, and whether the
  // program paused before it. The capacity may be larger afterwards.
  void OnTake(int64_t left, bool paused);

 private:
  // Whether takes have waited too long before the buffer was full at a time.
  bool NeedsMore(int64_t full_at);
  void CountTake(int64_t left);
  void Change(int64_t capacity);

  int64_t capacity_ = kLeastCapacity;

  // When the buffer was full first since the last take.
  std::optional<int64_t> full_at_;
  // When it was full first since the last change, and how long takes have waited
  // since then. Forgotten after a minute, so that a change of the load counts
  // soon.
  std::optional<int64_t> full_since_;
  int64_t waited_micros_ = 0;

  int64_t takes_since_change_ = 0;

  // The last takes, and the fewest records that one of them left.
  struct {
    int64_t takes = 0;
    int64_t fewest_left = std::numeric_limits<int64_t>::max();
  } observed_;
  // After how many takes the capacity may halve, and whether it has ever.
  int64_t takes_to_halve_ = kTakesToSettle;
  bool has_halved_ = false;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_CAPACITY_TUNER_H_
