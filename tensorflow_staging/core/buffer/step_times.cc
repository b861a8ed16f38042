// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/step_times.h"

#include <algorithm>
#include <utility>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kPauseMicros = 1000 * 1000;
constexpr int64_t kPauseGaps = 8;

}  // namespace

bool StepTimes::OnTake(int64_t began_micros, int64_t ended_micros) {
  const int64_t last = std::exchange(last_micros_, ended_micros);
  if (last == 0) return false;
  const int64_t gap = began_micros - last;
  const int64_t longest = LongestGap();
  const int64_t counted = std::min(gap, longest);
  // Steps that become slower for good are no pause after some of them.
  mean_gap_micros_ +=
      mean_gap_micros_ == 0 ? counted : (counted - mean_gap_micros_) / 16;
  if (gap > longest) return true;
  ++count_;
  total_micros_ += ended_micros - last;
  wait_micros_ += ended_micros - began_micros;
  return false;
}

int64_t StepTimes::LongestGap() const {
  return std::max(kPauseMicros, kPauseGaps * mean_gap_micros_);
}

}  // namespace staging
}  // namespace tensorflow
