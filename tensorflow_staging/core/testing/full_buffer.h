// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FULL_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FULL_BUFFER_H_

// Waits of tests for a stage that reads ahead. They fail the test if the stage does
// not come so far.

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>  // NOLINT

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"

namespace tensorflow {
namespace staging {

constexpr absl::Duration kLongestWaitForRecords = absl::Seconds(20);

// Waits until a runner has put so many records, those that steps took included.
inline void AwaitRecords(const PrefetchRunner& runner, int64_t count) {
  const absl::Time deadline = absl::Now() + kLongestWaitForRecords;
  while (runner.GetStats().records < count) {
    ASSERT_LT(absl::Now(), deadline)
        << runner.GetStats().records << " of " << count;
    std::this_thread::yield();
  }
}

// Waits until a record waits for room in the buffer, of which `found` are then the
// statistics.
inline void AwaitFullBuffer(PrefetchRunner* runner,
                            BufferStats* found = nullptr) {
  const absl::Time deadline = absl::Now() + kLongestWaitForRecords;
  BufferStats ignored;
  BufferStats* const stats = found != nullptr ? found : &ignored;
  do {
    ASSERT_EQ(runner->ReadBuffer(stats), OkStatus());
    ASSERT_LT(absl::Now(), deadline) << stats->ShortDebugString();
    std::this_thread::yield();
  } while (stats->records() < stats->room() || stats->waiting_puts() == 0);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FULL_BUFFER_H_
