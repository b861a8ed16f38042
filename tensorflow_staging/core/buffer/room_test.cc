// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/room.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kLeast = SlowStart::kLeastRecords;

TEST(RoomTest, AGivenCapacityIsFilledSlowlyAfterTheFirstTake) {
  Room room(/*capacity=*/40, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  EXPECT_FALSE(room.tunes());
  EXPECT_EQ(room.capacity(), 40);
  EXPECT_FALSE(room.fills_slowly());
  room.OnTakeWaited(/*waited_micros=*/1);
  EXPECT_TRUE(room.fills_slowly());
  EXPECT_EQ(room.records(), kLeast);
  room.OnFull(/*now_micros=*/0);
  room.OnTakeWaited(/*waited_micros=*/1);
  EXPECT_EQ(room.records(), 2 * kLeast);
  room.OnPause();
  EXPECT_FALSE(room.fills_slowly());
  room.OnTake(/*left=*/0, /*paused=*/true);
  EXPECT_TRUE(room.fills_slowly());
  room.OnDropped();
  EXPECT_EQ(room.records(), 40);
  room.OnTakeWaited(/*waited_micros=*/1);
  room.FillNow();
  EXPECT_EQ(room.records(), 40);
  EXPECT_EQ(room.NewlySettled(), std::nullopt);
}

TEST(RoomTest, ManyTakesThatWaitNeedNoMoreThanTheCapacity) {
  Room room(/*capacity=*/40, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  for (int i = 0; i < 100; ++i) {
    room.OnFull(/*now_micros=*/0);
    room.OnTakeWaited(/*waited_micros=*/1);
  }
  EXPECT_EQ(room.records(), 40);
}

TEST(RoomTest, ATunedCapacityIsReportedOnceItHasSettled) {
  Room room(kAutotune, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  EXPECT_TRUE(room.tunes());
  EXPECT_EQ(room.capacity(), CapacityTuner::kLeastCapacity);
  EXPECT_EQ(room.NewlySettled(), std::nullopt);
  for (int i = 0; i < CapacityTuner::kTakesToSettle; ++i) {
    room.OnTake(/*left=*/0, /*paused=*/false);
  }
  EXPECT_EQ(room.NewlySettled(), CapacityTuner::kLeastCapacity);
  EXPECT_EQ(room.NewlySettled(), std::nullopt);
}

TEST(RoomTest, ADeviceWithoutMemoryLeavesRoomForFewer) {
  Room room(/*capacity=*/4, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  EXPECT_TRUE(room.HoldFewer(/*held=*/4));
  EXPECT_EQ(room.capacity(), 3);
  // It still holds the fourth.
  EXPECT_FALSE(room.HoldFewer(/*held=*/4));
  EXPECT_TRUE(room.HoldFewer(/*held=*/1));
  EXPECT_EQ(room.records(), 1);
  EXPECT_FALSE(room.HoldFewer(/*held=*/0)) << "One always has room.";
  EXPECT_EQ(room.capacity(), 1);
  EXPECT_FALSE(room.fills_slowly());
}

TEST(RoomTest, ATunedCapacityStaysWithinADevicesMemory) {
  constexpr int64_t kMillisecond = 1000;
  Room room(kAutotune, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  EXPECT_TRUE(room.HoldFewer(/*held=*/3));
  Room next(kAutotune, /*capacity_bytes=*/0,
            /*device_capacity_bytes=*/0);
  next.GoOnWith(room);
  for (int64_t i = 1; 2 * i <= CapacityTuner::kTakesToSettle; ++i) {
    // Full, empty, and full again.
    for (Room* each : {&room, &next}) {
      each->OnFull(10 * i * kMillisecond);
      each->OnTakeWaited(/*waited_micros=*/5 * kMillisecond);
      each->OnFull((10 * i + 8) * kMillisecond);
      each->OnTake(/*left=*/2, /*paused=*/false);
      EXPECT_EQ(each->capacity(), 3);
    }
  }
  // It has not grown in vain.
  for (const Room* each : {&room, &next}) EXPECT_TRUE(each->settled());
}

TEST(RoomTest, BytesAreBoundedIfAskedFor) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const MemoryBytes most = {kMost, {{"GPU:0", kMost}}};
  EXPECT_TRUE(Room(1, 0, 0).HasBytes(/*stored=*/{}, most));
  EXPECT_FALSE(Room(1, 10, 0).HasBytes(/*stored=*/{}, most));
  EXPECT_FALSE(Room(1, 0, 10).HasBytes(/*stored=*/{}, most));
  EXPECT_TRUE(Room(1, 10, 0).HasBytes(/*stored=*/{4}, {6}));
  EXPECT_FALSE(Room(1, 10, 0).HasBytes(/*stored=*/{4}, {7}));
}

TEST(RoomTest, BytesOfEachDeviceAreBoundedApart) {
  const Room room(/*capacity=*/1, /*capacity_bytes=*/10,
                  /*device_capacity_bytes=*/20);
  const MemoryBytes stored = {4, {{"GPU:0", 15}, {"GPU:1", 1}}};
  EXPECT_TRUE(room.HasBytes(stored, {6, {{"GPU:0", 5}, {"GPU:1", 19}}}));
  EXPECT_TRUE(room.HasBytes(stored, {0, {{"GPU:2", 20}}}));
  EXPECT_FALSE(room.HasBytes(stored, {7, {{"GPU:0", 5}}}));
  EXPECT_FALSE(room.HasBytes(stored, {6, {{"GPU:0", 6}}}));
  EXPECT_FALSE(room.HasBytes(stored, {0, {{"GPU:1", 20}}}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
