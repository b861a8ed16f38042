// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_WAIT_TIMES_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_WAIT_TIMES_H_

#include <array>
#include <cstdint>

#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"

namespace tensorflow {
namespace staging {

// How long calls waited. Only calls that wait are added. The histogram has four
// buckets for each power of two, so that a percentile is at most 12.5 % off.
//
// Not thread-safe.
class WaitTimes {
 public:
  // Adds a call that waited for `micros`; a negative number counts as 0.
  void Add(int64_t micros);

  // `calls` is the number of all calls; those not added did not wait.
  BufferStats::Waits Summarize(int64_t calls) const;

 private:
  static constexpr int kBuckets = 4 * 62;

  static int BucketOf(int64_t micros);
  // The middle of the times that bucket `index` counts.
  static int64_t MicrosOf(int index);
  // The time that `percent` % of `calls` calls did not exceed.
  int64_t Percentile(int percent, int64_t calls) const;

  int64_t waits_ = 0;
  int64_t total_micros_ = 0;
  std::array<int64_t, kBuckets> histogram_{};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_WAIT_TIMES_H_
