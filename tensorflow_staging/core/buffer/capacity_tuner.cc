// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/capacity_tuner.h"

#include <algorithm>
#include <utility>

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

void CapacityTuner::Restart() {
  // The wait for its first record says nothing about its capacity.
  full_at_.reset();
  full_since_.reset();
  waited_micros_ = 0;
}

void CapacityTuner::OnFull(int64_t now_micros) {
  if (!full_at_.has_value()) full_at_ = now_micros;
}

void CapacityTuner::OnTakeWaited(int64_t waited_micros) {
  waited_micros_ += waited_micros;
  full_at_.reset();
  CountTake(0);
}

void CapacityTuner::OnTake(int64_t left, bool paused) {
  const std::optional<int64_t> full_at = std::exchange(full_at_, std::nullopt);
  if (paused || !full_at.has_value() || !NeedsMore(*full_at)) {
    CountTake(left);
    return;
  }
  if (has_halved_) {
    takes_to_halve_ = std::min(4 * takes_to_halve_, kMostTakesToHalve);
  }
  Change(2 * capacity_);
}

bool CapacityTuner::NeedsMore(int64_t full_at) {
  if (full_since_.has_value()) {
    const int64_t elapsed = full_at - *full_since_;
    if (waited_micros_ > elapsed / kToleratedPart) {
      return capacity_ < kLargestCapacity;
    }
    if (elapsed <= kMemoryMicros) return false;
  }
  full_since_ = full_at;
  waited_micros_ = 0;
  return false;
}

void CapacityTuner::CountTake(int64_t left) {
  ++takes_since_change_;
  ++observed_.takes;
  observed_.fewest_left = std::min(observed_.fewest_left, left);
  if (observed_.takes < takes_to_halve_) return;
  const bool halves =
      capacity_ > kLeastCapacity && observed_.fewest_left >= capacity_ / 2;
  observed_ = {};
  if (!halves) return;
  has_halved_ = true;
  Change(capacity_ / 2);
}

void CapacityTuner::Change(int64_t capacity) {
  capacity_ = capacity;
  full_since_.reset();
  takes_since_change_ = 0;
  observed_ = {};
}

}  // namespace staging
}  // namespace tensorflow
