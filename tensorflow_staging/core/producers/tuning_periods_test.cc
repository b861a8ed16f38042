// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/tuning_periods.h"

#include <gtest/gtest.h>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

using std::chrono::milliseconds;

// A stage whose only producer needs all the time of each record, which steps
// take at once, on idle cores.
class TuningPeriodsTest : public ::testing::Test {
 protected:
  // Notes a record after `time` and `records` more. Returns whether the number
  // changes.
  bool Pass(milliseconds time, int64_t records) {
    now_ += time;
    records_ += records;
    const int64_t micros = 1000 * (now_ - kStart).count();
    if (!tuning_.IsDue(now_, records_)) return false;
    ++reads_;
    if (!status_.ok()) return tuning_.EndPeriod(now_, records_, status_);
    // As if the stage had worked for long before.
    TuningPeriods::Totals totals = {};
    totals.put = totals.taken = 1000 + records_;
    totals.take_wait_micros = 5000000 + micros;
    totals.put_wait_micros = 7000000;
    totals.cpu_micros = 9000000;
    return tuning_.EndPeriod(now_, records_, totals);
  }

  static constexpr auto kStart =
      std::chrono::time_point<std::chrono::steady_clock, milliseconds>(
          std::chrono::hours(1));
  TuningPeriods tuning_{/*most=*/8, /*cores=*/4};
  std::chrono::time_point<std::chrono::steady_clock, milliseconds> now_ =
      kStart;
  int64_t records_ = 0;
  int reads_ = 0;
  Status status_;
};

TEST_F(TuningPeriodsTest, TheFirstPeriodHasNoKnownBeginning) {
  EXPECT_FALSE(Pass(milliseconds(0), 3));
  EXPECT_EQ(reads_, 0);
  EXPECT_FALSE(Pass(milliseconds(0), 1));
  EXPECT_EQ(reads_, 1);
}

TEST_F(TuningPeriodsTest, APeriodLastsLongEnoughThatChanceDoesNotDecide) {
  Pass(milliseconds(0), 4);
  Pass(milliseconds(199), 1000);
  Pass(milliseconds(0), 1000);
  EXPECT_EQ(reads_, 1);
  Pass(milliseconds(1), 0);
  EXPECT_EQ(reads_, 2);
  Pass(milliseconds(1000), 3);
  EXPECT_EQ(reads_, 2);
  Pass(milliseconds(0), 1);
  EXPECT_EQ(reads_, 3);
}

TEST_F(TuningPeriodsTest, APeriodHasWhatTheTotalsHaveGained) {
  Pass(milliseconds(0), 4);
  EXPECT_FALSE(Pass(milliseconds(200), 10));
  EXPECT_EQ(tuning_.producers(), 1);
  // Two periods of waiting steps are enough for a trial.
  EXPECT_TRUE(Pass(milliseconds(200), 10));
  EXPECT_EQ(tuning_.producers(), 8);
  EXPECT_FALSE(tuning_.settled());
}

TEST_F(TuningPeriodsTest, AfterAnErrorTheNumberStaysAsItIs) {
  Pass(milliseconds(0), 4);
  status_ = errors::Cancelled("closing");
  EXPECT_FALSE(Pass(milliseconds(200), 10));
  EXPECT_EQ(reads_, 2);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Pass(milliseconds(200), 10));
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(tuning_.producers(), 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
