// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/step_times.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kSecond = 1000 * kMilli;
constexpr int64_t kStart = kSecond;

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

// As after a checkpoint or another trace.
TEST(StepTimesTest, TheFirstGapMayBeAPause) {
  StepTimes times;
  times.OnTake(kStart, kStart);
  EXPECT_TRUE(times.OnTake(kStart + 30 * kSecond, kStart + 30 * kSecond));
  EXPECT_EQ(times.count(), 0);
  EXPECT_LE(times.PauseBegins(), kStart + 40 * kSecond);
}

TEST(StepTimesTest, SlowStepsAreNoPauses) {
  StepTimes times;
  for (int i = 0; i < 10; ++i) {
    times.OnTake(kStart + 3 * i * kSecond, kStart + 3 * i * kSecond);
  }
  // But for the first gap, which may be a pause.
  EXPECT_EQ(times.count(), 8);
}

TEST(StepTimesTest, ALongWaitIsNoPause) {
  StepTimes times;
  times.OnTake(kStart, kStart);
  times.OnTake(kStart + kMilli, kStart + 5000 * kMilli);
  EXPECT_EQ(times.count(), 1);
  EXPECT_EQ(times.total_micros(), 5000 * kMilli);
  EXPECT_EQ(times.wait_micros(), 4999 * kMilli);
}

// A program that takes records, with a clock that the tests set.
class Program {
 public:
  // Takes a record after `gap` microseconds. Returns whether it paused.
  bool TakeAfter(int64_t gap) {
    now_ += gap;
    return steps_.OnTake(now_, now_);
  }

  // Takes a record that comes `waited` microseconds later.
  bool WaitAfter(int64_t gap, int64_t waited) {
    const int64_t began = now_ + gap;
    now_ = began + waited;
    return steps_.OnTake(began, now_);
  }

  void TakeOften(int64_t gap) {
    for (int i = 0; i < 200; ++i) TakeAfter(gap);
  }

  // How long the program may take no record until it counts as a pause.
  int64_t Longest() const { return steps_.PauseBegins() - now_; }

 private:
  StepTimes steps_;
  int64_t now_ = kSecond;
};

TEST(StepTimesTest, ASecondWithoutATakeIsAPause) {
  Program program;
  program.TakeOften(5 * kMilli);
  EXPECT_EQ(program.Longest(), kSecond);
  EXPECT_FALSE(program.TakeAfter(kSecond));
  EXPECT_TRUE(program.TakeAfter(kSecond + 1));
}

TEST(StepTimesTest, SlowStepsAreNoPause) {
  Program program;
  program.TakeOften(kSecond);
  EXPECT_FALSE(program.TakeAfter(7 * kSecond));
  program.TakeOften(kSecond);
  EXPECT_TRUE(program.TakeAfter(9 * kSecond));
}

TEST(StepTimesTest, AWaitForARecordIsNoPause) {
  Program program;
  program.TakeOften(5 * kMilli);
  EXPECT_FALSE(program.WaitAfter(5 * kMilli, 10 * kSecond));
  EXPECT_FALSE(program.TakeAfter(5 * kMilli));
}

TEST(StepTimesTest, TheTimeBeforeTheFirstTakeIsNoPause) {
  Program program;
  EXPECT_FALSE(program.TakeAfter(10 * kSecond));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
