// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/wait_times.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tensorflow {
namespace staging {

void WaitTimes::Add(int64_t micros) {
  micros = std::max<int64_t>(micros, 0);
  ++waits_;
  // Stays at the largest number once it has reached it.
  total_micros_ +=
      std::min(micros, std::numeric_limits<int64_t>::max() - total_micros_);
  ++histogram_[BucketOf(micros)];
}

BufferStats::Waits WaitTimes::Summarize(int64_t calls) const {
  BufferStats::Waits summary;
  summary.set_calls(calls);
  summary.set_waits(waits_);
  summary.set_total_micros(total_micros_);
  summary.set_p50_micros(Percentile(50, calls));
  summary.set_p99_micros(Percentile(99, calls));
  return summary;
}

int WaitTimes::BucketOf(int64_t micros) {
  // The first four buckets count one number each; after that, the two bits
  // below the highest one choose among the four of a power of two.
  if (micros < 4) return static_cast<int>(micros);
  const int power = 63 - __builtin_clzll(static_cast<uint64_t>(micros));
  return 4 * (power - 1) + static_cast<int>((micros >> (power - 2)) & 3);
}

int64_t WaitTimes::MicrosOf(int index) {
  if (index < 4) return index;
  const int shift = index / 4 - 1;
  const int64_t least = int64_t{4 + index % 4} << shift;
  return least + ((int64_t{1} << shift) - 1) / 2;
}

int64_t WaitTimes::Percentile(int percent, int64_t calls) const {
  // How many calls may take longer.
  int64_t left =
      calls / 100 * (100 - percent) + calls % 100 * (100 - percent) / 100;
  for (int i = kBuckets - 1; i >= 0; --i) {
    left -= histogram_[i];
    if (left < 0) return MicrosOf(i);
  }
  return 0;
}

}  // namespace staging
}  // namespace tensorflow
