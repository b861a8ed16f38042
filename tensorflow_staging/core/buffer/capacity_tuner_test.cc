// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/capacity_tuner.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMilli = 1000;
constexpr int64_t kSecond = 1000 * kMilli;

// Lets takes wait for `waited` microseconds within `elapsed`, between two times
// at which the buffer is full. Returns whether the capacity grows.
bool FullEmptyFull(int64_t waited, int64_t elapsed, CapacityTuner* tuner) {
  tuner->OnFull(0);
  tuner->OnTakeWaited(waited);
  return tuner->OnFull(elapsed);
}

// Lets the capacity become `capacity`, a power of two.
void GrowTo(int64_t capacity, CapacityTuner* tuner) {
  while (tuner->capacity() < capacity) {
    ASSERT_TRUE(FullEmptyFull(kMilli, 2 * kMilli, tuner));
  }
}

// Lets `takes` takes leave `left` records each.
void Take(int64_t takes, int64_t left, CapacityTuner* tuner) {
  for (int64_t i = 0; i < takes; ++i) tuner->OnTake(left);
}

TEST(CapacityTunerTest, DoublesIfTheBufferIsFullAndEmptyByTurns) {
  CapacityTuner tuner;
  EXPECT_EQ(tuner.capacity(), 1);
  for (int64_t capacity : {2, 4, 8, 16}) {
    EXPECT_TRUE(FullEmptyFull(kMilli, 2 * kMilli, &tuner));
    EXPECT_EQ(tuner.capacity(), capacity);
  }
}

TEST(CapacityTunerTest, SlowProducersNeedNoBuffer) {
  CapacityTuner tuner;
  for (int i = 0; i < 1000; ++i) tuner.OnTakeWaited(kSecond);
  // The waits of the beginning do not count either.
  EXPECT_FALSE(tuner.OnFull(1000 * kSecond));
  EXPECT_FALSE(tuner.OnFull(1001 * kSecond));
  EXPECT_EQ(tuner.capacity(), 1);
}

TEST(CapacityTunerTest, FastProducersNeedNoBuffer) {
  CapacityTuner tuner;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(tuner.OnFull(i * kMilli));
    tuner.OnTake(1);
  }
  EXPECT_EQ(tuner.capacity(), 1);
}

TEST(CapacityTunerTest, OnePercentOfTheTimeIsTolerated) {
  CapacityTuner tuner;
  EXPECT_FALSE(FullEmptyFull(10 * kMilli, kSecond, &tuner));
  tuner.OnTakeWaited(11 * kMilli);
  EXPECT_TRUE(tuner.OnFull(2 * kSecond));
}

TEST(CapacityTunerTest, AQuietHourDoesNotExcuseWaitsAfterIt) {
  CapacityTuner tuner;
  for (int second = 0; second < 3600; ++second) {
    EXPECT_FALSE(tuner.OnFull(second * kSecond));
  }
  tuner.OnTakeWaited(2 * kSecond);
  EXPECT_TRUE(tuner.OnFull(3602 * kSecond));
}

TEST(CapacityTunerTest, HalvesIfHalfOfTheBufferIsNeverNeeded) {
  CapacityTuner tuner;
  GrowTo(8, &tuner);
  Take(CapacityTuner::kTakesToSettle - 1, 4, &tuner);
  EXPECT_EQ(tuner.capacity(), 8);
  tuner.OnTake(7);
  EXPECT_EQ(tuner.capacity(), 4);
}

TEST(CapacityTunerTest, ASingleDeepTakeKeepsTheCapacity) {
  CapacityTuner tuner;
  GrowTo(8, &tuner);
  Take(CapacityTuner::kTakesToSettle - 1, 7, &tuner);
  tuner.OnTake(3);
  Take(CapacityTuner::kTakesToSettle - 1, 7, &tuner);
  tuner.OnTakeWaited(1);
  EXPECT_EQ(tuner.capacity(), 8);
}

TEST(CapacityTunerTest, NeverHalvesBelowOne) {
  CapacityTuner tuner;
  Take(10 * CapacityTuner::kTakesToSettle, 1, &tuner);
  EXPECT_EQ(tuner.capacity(), 1);
}

TEST(CapacityTunerTest, TriesASmallerCapacityEverMoreRarely) {
  CapacityTuner tuner;
  int64_t takes = CapacityTuner::kTakesToSettle;
  for (int i = 0; i < 4; ++i) {
    GrowTo(2, &tuner);
    Take(takes - 1, 1, &tuner);
    EXPECT_EQ(tuner.capacity(), 2) << i;
    tuner.OnTake(1);
    EXPECT_EQ(tuner.capacity(), 1) << i;
    takes *= 4;
  }
}

TEST(CapacityTunerTest, SettlesAfterManyTakesWithoutAChange) {
  CapacityTuner tuner;
  GrowTo(4, &tuner);
  Take(CapacityTuner::kTakesToSettle - 1, 0, &tuner);
  EXPECT_FALSE(tuner.settled());
  tuner.OnTakeWaited(kMilli);
  EXPECT_TRUE(tuner.settled());
  GrowTo(8, &tuner);
  EXPECT_FALSE(tuner.settled());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
