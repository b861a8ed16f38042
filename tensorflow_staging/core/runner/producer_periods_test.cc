// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_periods.h"

#include <gtest/gtest.h>

#include <optional>

namespace tensorflow {
namespace staging {
namespace {

using std::chrono::milliseconds;

const ProducerPeriods::Time kStart(std::chrono::hours(1));

BufferStats Stats(int64_t put, int64_t taken, int64_t take_wait,
                  int64_t put_wait) {
  BufferStats stats;
  stats.set_put(put);
  stats.set_taken(taken);
  stats.mutable_take_waits()->set_total_micros(take_wait);
  stats.mutable_put_waits()->set_total_micros(put_wait);
  return stats;
}

TEST(ProducerPeriodsTest, TheFirstPeriodHasNoKnownBeginning) {
  ProducerPeriods periods;
  EXPECT_FALSE(periods.MayEnd(kStart, 3));
  EXPECT_TRUE(periods.MayEnd(kStart, 4));
  EXPECT_EQ(periods.End(kStart, 8, Stats(9, 5, 10, 20), 30), std::nullopt);
}

TEST(ProducerPeriodsTest, APeriodHasWhatTheTotalsHaveGained) {
  ProducerPeriods periods;
  periods.End(kStart, 8, Stats(9, 5, 10, 20), 30);
  for (int i = 0; i < 2; ++i) {
    const std::optional<ProducerTuner::Period> period = periods.End(
        kStart + milliseconds(250 * (i + 1)), 30 * (i + 1),
        Stats(9 + 21 * (i + 1), 5 + 20 * (i + 1), 10 + 300 * (i + 1), 20 + i),
        30 + 400 * (i + 1));
    ASSERT_TRUE(period.has_value());
    EXPECT_EQ(period->micros, 250000);
    EXPECT_EQ(period->put, 21);
    EXPECT_EQ(period->taken, 20);
    EXPECT_EQ(period->take_wait_micros, 300);
    EXPECT_EQ(period->put_wait_micros, i);
    EXPECT_EQ(period->cpu_micros, 400);
  }
}

TEST(ProducerPeriodsTest, APeriodLastsLongEnoughThatChanceDoesNotDecide) {
  ProducerPeriods periods;
  periods.End(kStart, 100, Stats(0, 0, 0, 0), 0);
  EXPECT_FALSE(periods.MayEnd(kStart + milliseconds(199), 1000));
  EXPECT_TRUE(periods.MayEnd(kStart + milliseconds(200), 1000));
  EXPECT_FALSE(periods.MayEnd(kStart + milliseconds(1000), 103));
  EXPECT_TRUE(periods.MayEnd(kStart + milliseconds(1000), 104));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
