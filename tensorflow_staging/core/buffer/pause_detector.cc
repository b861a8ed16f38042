// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/pause_detector.h"

#include <algorithm>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kPauseMicros = 1000 * 1000;
constexpr int64_t kPauseGaps = 8;

}  // namespace

bool PauseDetector::OnTake(int64_t began_micros, int64_t ended_micros) {
  const int64_t last = last_take_micros_;
  last_take_micros_ = ended_micros;
  if (last == 0) return false;
  const int64_t gap = began_micros - last;
  if (mean_gap_micros_ == 0) mean_gap_micros_ = gap;
  const int64_t longest = LongestGap();
  // Steps that become slower for good are no pause after some of them.
  mean_gap_micros_ += (std::min(gap, longest) - mean_gap_micros_) / 16;
  return gap > longest;
}

int64_t PauseDetector::LongestGap() const {
  return std::max(kPauseMicros, kPauseGaps * mean_gap_micros_);
}

}  // namespace staging
}  // namespace tensorflow
