// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/capacity_tuner.h"

#include <algorithm>

namespace tensorflow {
namespace staging {
namespace {

// The part of the time for which takes may wait without consequence.
constexpr int64_t kToleratedPart = 100;
constexpr int64_t kMemoryMicros = 60 * 1000 * 1000;
// No program needs more, and twice as much must not overflow.
constexpr int64_t kLargestCapacity = int64_t{1} << 20;
constexpr int64_t kMostTakesToHalve = int64_t{1} << 40;

}  // namespace

void CapacityTuner::OnFull(int64_t now_micros) {
  if (is_full_) return;
  is_full_ = true;
  filled_micros_ = now_micros;
}

void CapacityTuner::OnTakeWaited(int64_t waited_micros, int64_t now_micros) {
  if (was_full_) waited_micros_ += waited_micros;
  pauses_.OnTake(now_micros - waited_micros, now_micros);
  is_full_ = false;
  CountTake(0);
}

void CapacityTuner::OnTake(int64_t left, int64_t now_micros) {
  const bool paused = pauses_.OnTake(now_micros, now_micros);
  if (is_full_) {
    is_full_ = false;
    if (!paused && CountFull(filled_micros_)) {
      Grow();
      return;
    }
  }
  CountTake(left);
}

bool CapacityTuner::CountFull(int64_t micros) {
  if (!was_full_) {
    was_full_ = true;
    full_since_micros_ = micros;
    waited_micros_ = 0;
    return false;
  }
  const int64_t elapsed = micros - full_since_micros_;
  if (waited_micros_ > elapsed / kToleratedPart) {
    return capacity_ < kLargestCapacity;
  }
  if (elapsed > kMemoryMicros) {
    full_since_micros_ = micros;
    waited_micros_ = 0;
  }
  return false;
}

void CapacityTuner::Grow() {
  if (has_halved_) {
    takes_to_halve_ = std::min(4 * takes_to_halve_, kMostTakesToHalve);
  }
  Change(2 * capacity_);
}

void CapacityTuner::CountTake(int64_t left) {
  ++takes_since_change_;
  ++observed_takes_;
  fewest_left_ = std::min(fewest_left_, left);
  if (observed_takes_ < takes_to_halve_) return;
  const bool halves =
      capacity_ > kLeastCapacity && fewest_left_ >= capacity_ / 2;
  observed_takes_ = 0;
  fewest_left_ = std::numeric_limits<int64_t>::max();
  if (!halves) return;
  has_halved_ = true;
  Change(capacity_ / 2);
}

void CapacityTuner::Change(int64_t capacity) {
  capacity_ = capacity;
  was_full_ = false;
  takes_since_change_ = 0;
  observed_takes_ = 0;
  fewest_left_ = std::numeric_limits<int64_t>::max();
}

}  // namespace staging
}  // namespace tensorflow
