// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/step_times.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kStart = 1000 * kMilli;

TEST(StepTimesTest, TheFirstTakeIsNoStep) {
  StepTimes times;
  times.OnTake(kStart, kStart + 500 * kMilli);
  EXPECT_EQ(times.count(), 0);
  EXPECT_EQ(times.total_micros(), 0);
  EXPECT_EQ(times.wait_micros(), 0);
}

TEST(StepTimesTest, AStepLastsFromOneRecordToTheNext) {
  StepTimes times;
  times.OnTake(kStart, kStart + 500 * kMilli);
  times.OnTake(kStart + 503 * kMilli, kStart + 503 * kMilli);
  times.OnTake(kStart + 506 * kMilli, kStart + 508 * kMilli);
  EXPECT_EQ(times.count(), 2);
  EXPECT_EQ(times.total_micros(), 8 * kMilli);
  EXPECT_EQ(times.wait_micros(), 2 * kMilli);
}

TEST(StepTimesTest, APauseOfTheProgramIsNoStep) {
  StepTimes times;
  for (int i = 0; i < 10; ++i) {
    times.OnTake(kStart + i * kMilli, kStart + i * kMilli);
  }
  times.OnTake(kStart + 5000 * kMilli, kStart + 5000 * kMilli);
  EXPECT_EQ(times.count(), 9);
  EXPECT_EQ(times.total_micros(), 9 * kMilli);
}

TEST(StepTimesTest, ALongWaitIsNoPause) {
  StepTimes times;
  times.OnTake(kStart, kStart);
  times.OnTake(kStart + kMilli, kStart + 5000 * kMilli);
  EXPECT_EQ(times.count(), 1);
  EXPECT_EQ(times.total_micros(), 5000 * kMilli);
  EXPECT_EQ(times.wait_micros(), 4999 * kMilli);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
