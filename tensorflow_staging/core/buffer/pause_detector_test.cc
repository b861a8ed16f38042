// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/pause_detector.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kSecond = 1000 * kMilli;

// A program that takes records, with a clock that the tests set.
class Program {
 public:
  // Takes a record after `gap` microseconds. Returns whether it paused.
  bool TakeAfter(int64_t gap) {
    now_ += gap;
    return pauses_.OnTake(now_, now_);
  }

  // Takes a record that comes `waited` microseconds later.
  bool WaitAfter(int64_t gap, int64_t waited) {
    const int64_t began = now_ + gap;
    now_ = began + waited;
    return pauses_.OnTake(began, now_);
  }

  void TakeOften(int64_t gap) {
    for (int i = 0; i < 200; ++i) TakeAfter(gap);
  }

  // How long the program may take no record until it counts as a pause.
  int64_t Longest() const { return pauses_.PauseBegins() - now_; }

 private:
  PauseDetector pauses_;
  int64_t now_ = kSecond;
};

TEST(PauseDetectorTest, ASecondWithoutATakeIsAPause) {
  Program program;
  program.TakeOften(5 * kMilli);
  EXPECT_EQ(program.Longest(), kSecond);
  EXPECT_FALSE(program.TakeAfter(kSecond));
  EXPECT_TRUE(program.TakeAfter(kSecond + 1));
}

TEST(PauseDetectorTest, SlowStepsAreNoPause) {
  Program program;
  program.TakeOften(kSecond);
  EXPECT_FALSE(program.TakeAfter(7 * kSecond));
  program.TakeOften(kSecond);
  EXPECT_TRUE(program.TakeAfter(9 * kSecond));
}

TEST(PauseDetectorTest, AWaitForARecordIsNoPause) {
  Program program;
  program.TakeOften(5 * kMilli);
  EXPECT_FALSE(program.WaitAfter(5 * kMilli, 10 * kSecond));
  EXPECT_FALSE(program.TakeAfter(5 * kMilli));
}

TEST(PauseDetectorTest, TheTimeBeforeTheFirstTakeIsNoPause) {
  Program program;
  EXPECT_FALSE(program.TakeAfter(10 * kSecond));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
