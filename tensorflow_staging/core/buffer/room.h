// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_ROOM_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_ROOM_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/memory_bytes.h"
#include "tensorflow_staging/core/buffer/slow_start.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

// How many records a buffer may hold, and how many bytes: what it was told, what
// it has found out (CapacityTuner), less while it fills (SlowStart), or less than
// any of these if a device has no memory for more.
//
// Times are those of any monotonic clock, in microseconds. Not thread-safe.
class Room {
 public:
  // `capacity` is at least 1, or kAutotune. The others bound the bytes of the host,
  // and of each device; 0 sets no bound.
  Room(int64_t capacity, int64_t capacity_bytes, int64_t device_capacity_bytes)
      : given_capacity_(capacity),
        capacity_bytes_(capacity_bytes),
        device_capacity_bytes_(device_capacity_bytes),
        slow_start_(capacity) {}

  bool tunes() const { return given_capacity_ == kAutotune; }
  bool settled() const { return tunes() && tuner_.settled(); }
  int64_t capacity() const {
    return std::min(tunes() ? tuner_.capacity() : given_capacity_, limit_);
  }
  // How many records there is room for now.
  int64_t records() const {
    return std::min(tunes() ? tuner_.capacity() : slow_start_.room(), limit_);
  }
  // Whether there is room for `bytes` bytes beside `stored` others.
  bool HasBytes(const MemoryBytes& stored, const MemoryBytes& bytes) const {
    return Fits(stored.on_host, bytes.on_host, capacity_bytes_) &&
           absl::c_all_of(bytes.on_devices, [&](const auto& of_device) {
             return Fits(stored.On(of_device.device), of_device.bytes,
                         device_capacity_bytes_);
           });
  }
  // Whether there is less room than the capacity, which grows with the program's
  // pauses.
  bool fills_slowly() const { return records() < capacity(); }

  // Notes that a device has no memory for a record beside those of which the buffer
  // holds `held`. Returns whether there is room for fewer from here on; one always
  // has room.
  bool HoldFewer(int64_t held) {
    const int64_t before = capacity();
    // If it holds more than it may, that is on its way.
    if (held <= before) {
      limit_ = std::max<int64_t>(std::min(held, before - 1), 1);
    }
    return capacity() < before;
  }

  // Notes that a put waits for room, but not for bytes.
  void OnFull(int64_t now_micros) {
    if (!tunes()) {
      slow_start_.OnFull();
    } else if (tuner_.capacity() < limit_) {
      // A larger capacity would leave no more room.
      tuner_.OnFull(now_micros);
    }
  }
  // Notes that a take has left `left` records in the buffer, and whether the
  // program paused before.
  void OnTake(int64_t left, bool paused) {
    tunes() ? tuner_.OnTake(left, paused) : slow_start_.OnTake(left);
  }
  // Notes that a take found no record, and has waited.
  void OnTakeWaited(int64_t waited_micros) {
    tunes() ? tuner_.OnTakeWaited(waited_micros) : slow_start_.OnTakeWaited();
  }
  // Notes that the program pauses.
  void OnPause() { slow_start_.OnPause(); }
  // Notes that all records have been dropped.
  void OnDropped() { slow_start_ = SlowStart(given_capacity_); }
  // Ends the slow start.
  void FillNow() { slow_start_.End(); }

  // Before the first record: goes on with what the room of another buffer that
  // chooses its capacity has found.
  void GoOnWith(const Room& found) {
    limit_ = found.limit_;
    tuner_ = found.tuner_;
    tuner_.Restart();
    if (settled()) reported_capacity_ = capacity();
  }

  // Returns the capacity if it has settled on another one than this returned
  // last.
  std::optional<int64_t> NewlySettled() {
    if (!settled() || capacity() == reported_capacity_) return std::nullopt;
    reported_capacity_ = capacity();
    return reported_capacity_;
  }

 private:
  static bool Fits(int64_t stored, int64_t bytes, int64_t bound) {
    return bound <= 0 || bytes <= bound - stored;
  }

  int64_t given_capacity_;
  int64_t capacity_bytes_;
  int64_t device_capacity_bytes_;
  // What devices have memory for.
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  // Of a buffer that chooses its capacity.
  CapacityTuner tuner_;
  int64_t reported_capacity_ = 0;
  // Of a buffer whose capacity is given.
  SlowStart slow_start_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_ROOM_H_
