// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/slow_start.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kCapacity = 40;
constexpr int64_t kLeast = SlowStart::kLeastRecords;
constexpr int64_t kTakes = SlowStart::kTakesPerRecord;

class SlowStartTest : public ::testing::Test {
 protected:
  void Take(int64_t left) { slow_start_.OnTake(left); }
  void Wait() { slow_start_.OnTakeWaited(); }

  SlowStart slow_start_{kCapacity};
};

TEST_F(SlowStartTest, ASmallBufferFillsAtOnce) {
  EXPECT_FALSE(SlowStart(1).active());
  EXPECT_FALSE(SlowStart(kLeast).active());
  EXPECT_TRUE(SlowStart(kLeast + 1).active());
}

TEST_F(SlowStartTest, ItFillsFreelyBeforeTheFirstTake) {
  EXPECT_EQ(slow_start_.room(), kCapacity);
}

TEST_F(SlowStartTest, AfterTheFirstTakeThereIsRoomForAFew) {
  Wait();
  EXPECT_EQ(slow_start_.room(), kLeast);
}

TEST_F(SlowStartTest, WhatItHeldAtTheFirstTakeKeepsItsRoom) {
  Take(/*left=*/10);
  EXPECT_EQ(slow_start_.room(), 11);
  Take(/*left=*/2);
  EXPECT_EQ(slow_start_.room(), 11);
}

TEST_F(SlowStartTest, ItGrowsByOneRecordEverySoManyTakes) {
  Wait();
  for (int64_t takes = 2; slow_start_.active(); ++takes) {
    Take(/*left=*/3);
    EXPECT_EQ(slow_start_.room(), kLeast + takes / kTakes);
  }
  EXPECT_EQ(slow_start_.room(), kCapacity);
}

TEST_F(SlowStartTest, ItDoublesWhenATakeWaitsAfterAPutHadNoRoom) {
  Wait();
  slow_start_.OnFull();
  Take(/*left=*/3);
  Wait();
  EXPECT_EQ(slow_start_.room(), 2 * kLeast);
}

TEST_F(SlowStartTest, ItDoesNotDoubleWhereProducersAreTooSlow) {
  for (int64_t i = 0; i < kTakes - 1; ++i) Wait();
  EXPECT_EQ(slow_start_.room(), kLeast);
}

TEST_F(SlowStartTest, OnePutWithoutRoomDoublesItOnce) {
  Wait();
  slow_start_.OnFull();
  for (int i = 0; i < 3; ++i) Wait();
  EXPECT_EQ(slow_start_.room(), 2 * kLeast);
}

TEST_F(SlowStartTest, AFullBufferBeforeTheFirstTakeDoublesNothing) {
  slow_start_.OnFull();
  Wait();
  EXPECT_EQ(slow_start_.room(), kLeast);
}

TEST_F(SlowStartTest, ItFillsFreelyWhileTheProgramPauses) {
  Wait();
  slow_start_.OnPause();
  EXPECT_EQ(slow_start_.room(), kCapacity);
  Take(/*left=*/kCapacity - 2);
  EXPECT_EQ(slow_start_.room(), kCapacity - 1);
}

TEST_F(SlowStartTest, ItNeverExceedsTheCapacity) {
  Wait();
  for (int i = 0; i < 10; ++i) {
    slow_start_.OnFull();
    Wait();
    EXPECT_LE(slow_start_.room(), kCapacity);
  }
  EXPECT_EQ(slow_start_.room(), kCapacity);
}

TEST_F(SlowStartTest, ItCanEndAtOnce) {
  Wait();
  slow_start_.End();
  EXPECT_FALSE(slow_start_.active());
  EXPECT_EQ(slow_start_.room(), kCapacity);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
