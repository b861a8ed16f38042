// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/wait_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tensorflow {
namespace staging {
namespace {

TEST(WaitTimesTest, IsEmptyAtFirst) {
  const BufferStats::Waits summary = WaitTimes().Summarize(0);
  EXPECT_EQ(summary.calls(), 0);
  EXPECT_EQ(summary.waits(), 0);
  EXPECT_EQ(summary.total_micros(), 0);
  EXPECT_EQ(summary.p50_micros(), 0);
  EXPECT_EQ(summary.p99_micros(), 0);
}

TEST(WaitTimesTest, CountsCallsAndWaits) {
  WaitTimes times;
  times.Add(3);
  times.Add(1);
  const BufferStats::Waits summary = times.Summarize(100);
  EXPECT_EQ(summary.calls(), 100);
  EXPECT_EQ(summary.waits(), 2);
  EXPECT_EQ(summary.total_micros(), 4);
  EXPECT_EQ(summary.p50_micros(), 0);
  // One call of a hundred took longer.
  EXPECT_EQ(summary.p99_micros(), 1);
}

TEST(WaitTimesTest, PercentilesAreAnEighthOffAtMost) {
  for (const double base : {1., 7., 100., 12345., 1e9, 1e16}) {
    WaitTimes times;
    for (int i = 1; i <= 1000; ++i) {
      times.Add(std::llround(base * i / 10));
    }
    const BufferStats::Waits summary = times.Summarize(1000);
    EXPECT_NEAR(summary.p50_micros(), base * 50, base * 50 / 8 + 1);
    EXPECT_NEAR(summary.p99_micros(), base * 99, base * 99 / 8 + 1);
  }
}

TEST(WaitTimesTest, AnyNumberIsAllowed) {
  WaitTimes times;
  times.Add(-1);
  EXPECT_EQ(times.Summarize(1).p50_micros(), 0);
  times = WaitTimes();
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  times.Add(kLongest);
  EXPECT_NEAR(times.Summarize(1).p50_micros(), kLongest, kLongest / 8);
  EXPECT_EQ(times.Summarize(1).total_micros(), kLongest);
  times.Add(1);
  EXPECT_EQ(times.Summarize(2).total_micros(), kLongest);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
