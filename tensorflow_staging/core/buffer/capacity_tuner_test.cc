// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/capacity_tuner.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tensorflow_staging/core/buffer/step_times.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kSecond = 1000 * kMilli;
constexpr int64_t kLeast = CapacityTuner::kLeastCapacity;

// A buffer's tuner, with a clock that the tests set.
class TunedBuffer {
 public:
  int64_t capacity() const { return tuner_.capacity(); }
  bool settled() const { return tuner_.settled(); }

  void Pass(int64_t micros) { now_ += micros; }
  void Fill() { tuner_.OnFull(now_); }
  void Take(int64_t left) { tuner_.OnTake(left, steps_.OnTake(now_, now_)); }

  // Lets a take wait.
  void Wait(int64_t micros) {
    Pass(micros);
    steps_.OnTake(now_ - micros, now_);
    tuner_.OnTakeWaited(micros);
  }

  // Takes a record `takes` times, a millisecond after the last one, and leaves
  // `left` each time.
  void TakeOften(int64_t takes, int64_t left) {
    for (int64_t i = 0; i < takes; ++i) {
      Pass(kMilli);
      Take(left);
    }
  }

  // Lets takes wait for `waited` microseconds within `elapsed`, between two
  // times at which the buffer is full. Returns whether the capacity grows.
  bool FullEmptyFull(int64_t waited, int64_t elapsed) {
    const int64_t before = capacity();
    Fill();
    Take(capacity());
    Wait(waited);
    Pass(elapsed - waited);
    Fill();
    Take(capacity());
    return capacity() > before;
  }

  // Another buffer goes on.
  void Restart() { tuner_.Restart(); }

  // Lets the capacity become `capacity`, a power of two.
  void GrowTo(int64_t capacity) {
    while (this->capacity() < capacity) {
      ASSERT_TRUE(FullEmptyFull(kMilli, 2 * kMilli));
    }
  }

 private:
  CapacityTuner tuner_;
  StepTimes steps_;
  int64_t now_ = kSecond;
};

TEST(CapacityTunerTest, DoublesIfTheBufferIsFullAndEmptyByTurns) {
  TunedBuffer buffer;
  EXPECT_EQ(buffer.capacity(), kLeast);
  for (int64_t capacity : {8, 16, 32, 64}) {
    EXPECT_TRUE(buffer.FullEmptyFull(kMilli, 2 * kMilli));
    EXPECT_EQ(buffer.capacity(), capacity);
  }
}

TEST(CapacityTunerTest, SlowProducersNeedNoLargerBuffer) {
  TunedBuffer buffer;
  for (int i = 0; i < 1000; ++i) buffer.Wait(kSecond);
  // The waits of the beginning do not count either.
  for (int i = 0; i < 2; ++i) {
    buffer.Fill();
    buffer.TakeOften(1, kLeast);
  }
  EXPECT_EQ(buffer.capacity(), kLeast);
}

TEST(CapacityTunerTest, FastProducersNeedNoLargerBuffer) {
  TunedBuffer buffer;
  for (int i = 0; i < 1000; ++i) {
    buffer.Fill();
    buffer.TakeOften(1, kLeast);
  }
  EXPECT_EQ(buffer.capacity(), kLeast);
}

TEST(CapacityTunerTest, AnotherBufferGoesOnWithTheCapacity) {
  TunedBuffer buffer;
  buffer.GrowTo(16);
  buffer.TakeOften(CapacityTuner::kTakesToSettle, 0);
  buffer.Fill();
  buffer.Restart();
  EXPECT_EQ(buffer.capacity(), 16);
  EXPECT_TRUE(buffer.settled());
  // The wait for its first record does not count.
  buffer.Wait(kSecond);
  buffer.Fill();
  buffer.Take(15);
  EXPECT_EQ(buffer.capacity(), 16);
  EXPECT_TRUE(buffer.FullEmptyFull(kMilli, 2 * kMilli));
}

TEST(CapacityTunerTest, OnePercentOfTheTimeIsTolerated) {
  TunedBuffer buffer;
  EXPECT_FALSE(buffer.FullEmptyFull(9 * kMilli, kSecond));
  buffer.Wait(11 * kMilli);
  buffer.Pass(kSecond - 11 * kMilli);
  buffer.Fill();
  buffer.Take(kLeast);
  EXPECT_EQ(buffer.capacity(), kLeast);
  buffer.Wait(30 * kMilli);
  buffer.Fill();
  buffer.Take(kLeast);
  EXPECT_EQ(buffer.capacity(), 2 * kLeast);
}

TEST(CapacityTunerTest, AQuietHourDoesNotExcuseWaitsAfterIt) {
  TunedBuffer buffer;
  for (int second = 0; second < 3600; ++second) {
    buffer.Fill();
    buffer.Pass(kSecond);
    buffer.Take(kLeast);
  }
  EXPECT_EQ(buffer.capacity(), kLeast);
  buffer.Wait(2 * kSecond);
  buffer.Fill();
  buffer.TakeOften(1, kLeast);
  EXPECT_EQ(buffer.capacity(), 2 * kLeast);
}

TEST(CapacityTunerTest, WhatFillsInAPauseOfTheProgramDoesNotCount) {
  TunedBuffer buffer;
  // The producer is slower than the step, but fills the buffer when the program
  // evaluates.
  for (int i = 0; i < 100; ++i) {
    buffer.Pass(kMilli);
    buffer.Fill();
    buffer.Pass(10 * kSecond);
    buffer.Take(kLeast);
    for (int step = 0; step < 100; ++step) {
      buffer.Pass(kMilli);
      buffer.Wait(kMilli);
    }
  }
  EXPECT_EQ(buffer.capacity(), kLeast);
}

TEST(CapacityTunerTest, SlowStepsAreNoPause) {
  TunedBuffer buffer;
  buffer.TakeOften(100, kLeast);
  // Steps take five seconds from now on, and the first of them seem to be
  // pauses.
  for (int i = 0; i < 20; ++i) {
    buffer.Pass(5 * kSecond);
    buffer.Take(kLeast);
  }
  EXPECT_TRUE(buffer.FullEmptyFull(2 * kSecond, 8 * kSecond));
}

TEST(CapacityTunerTest, HalvesIfHalfOfTheBufferIsNeverNeeded) {
  TunedBuffer buffer;
  buffer.GrowTo(8);
  buffer.TakeOften(CapacityTuner::kTakesToSettle - 1, 4);
  EXPECT_EQ(buffer.capacity(), 8);
  buffer.TakeOften(1, 7);
  EXPECT_EQ(buffer.capacity(), 4);
}

TEST(CapacityTunerTest, ASingleDeepTakeKeepsTheCapacity) {
  TunedBuffer buffer;
  buffer.GrowTo(8);
  buffer.TakeOften(CapacityTuner::kTakesToSettle - 1, 7);
  buffer.TakeOften(1, 3);
  buffer.TakeOften(CapacityTuner::kTakesToSettle - 1, 7);
  buffer.Wait(1);
  EXPECT_EQ(buffer.capacity(), 8);
}

TEST(CapacityTunerTest, NeverHalvesBelowTheLeast) {
  TunedBuffer buffer;
  buffer.TakeOften(10 * CapacityTuner::kTakesToSettle, kLeast);
  EXPECT_EQ(buffer.capacity(), kLeast);
}

TEST(CapacityTunerTest, TriesASmallerCapacityEverMoreRarely) {
  TunedBuffer buffer;
  int64_t takes = CapacityTuner::kTakesToSettle;
  for (int i = 0; i < 4; ++i) {
    buffer.GrowTo(2 * kLeast);
    buffer.TakeOften(takes - 1, kLeast);
    EXPECT_EQ(buffer.capacity(), 2 * kLeast) << i;
    buffer.TakeOften(1, kLeast);
    EXPECT_EQ(buffer.capacity(), kLeast) << i;
    takes *= 4;
  }
}

TEST(CapacityTunerTest, SettlesAfterManyTakesWithoutAChange) {
  TunedBuffer buffer;
  buffer.GrowTo(8);
  buffer.TakeOften(CapacityTuner::kTakesToSettle - 1, 0);
  EXPECT_FALSE(buffer.settled());
  buffer.Wait(kMilli);
  EXPECT_TRUE(buffer.settled());
  buffer.GrowTo(16);
  EXPECT_FALSE(buffer.settled());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
