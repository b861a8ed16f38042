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

bool CapacityTuner::OnFull(int64_t now_micros) {
  if (!was_full_) {
    was_full_ = true;
    full_since_micros_ = now_micros;
    waited_micros_ = 0;
    return false;
  }
  const int64_t elapsed = now_micros - full_since_micros_;
  if (waited_micros_ > elapsed / kToleratedPart &&
      capacity_ < kLargestCapacity) {
    if (has_halved_) {
      takes_to_halve_ = std::min(4 * takes_to_halve_, kMostTakesToHalve);
    }
    Change(2 * capacity_);
    return true;
  }
  if (elapsed > kMemoryMicros) {
    full_since_micros_ = now_micros;
    waited_micros_ = 0;
  }
  return false;
}

void CapacityTuner::OnTakeWaited(int64_t waited_micros) {
  if (was_full_) waited_micros_ += waited_micros;
  OnTake(0);
}

void CapacityTuner::OnTake(int64_t left) {
  ++takes_since_change_;
  ++observed_takes_;
  fewest_left_ = std::min(fewest_left_, left);
  if (observed_takes_ < takes_to_halve_) return;
  const bool halves = capacity_ > 1 && fewest_left_ >= capacity_ / 2;
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
