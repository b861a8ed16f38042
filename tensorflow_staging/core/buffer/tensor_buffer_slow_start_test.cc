// SPDX-License-Identifier: Apache-2.0
//
// How a TensorBuffer of many records fills.

#include <gtest/gtest.h>

#include <cstdint>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kCapacity = 12;
constexpr int64_t kLeast = SlowStart::kLeastRecords;

// Puts records until a put has to wait, and returns that one.
PutResult Fill(TensorBuffer* buffer) {
  while (true) {
    PutResult put;
    buffer->PutAsync(MakeRecord(buffer->GetStats().put()), kNoTimeout, nullptr,
                     put.Callback());
    if (!put.done()) return put;
    EXPECT_EQ(put.Wait(), OkStatus());
  }
}

// Lets a take wait for the record 0.
void TakeFirst(TensorBuffer* buffer) {
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  EXPECT_EQ(Put(buffer, int64_t{0}), OkStatus());
  EXPECT_EQ(take.value(), 0);
}

void Empty(TensorBuffer* buffer) {
  while (buffer->Size() > 0) Take(buffer);
}

TEST(TensorBufferSlowStartTest, FillsAtOnceBeforeTheFirstTake) {
  auto buffer = MakeBuffer(kCapacity);
  PutResult last = Fill(buffer.get());
  EXPECT_EQ(buffer->Size(), kCapacity);
  for (int64_t i = 0; i <= kCapacity; ++i) EXPECT_EQ(Take(buffer.get()), i);
  EXPECT_EQ(last.Wait(), OkStatus());
}

TEST(TensorBufferSlowStartTest, HasRoomForAFewWhileStepsTake) {
  auto buffer = MakeBuffer(kCapacity);
  TakeFirst(buffer.get());
  PutResult last = Fill(buffer.get());
  EXPECT_EQ(buffer->Size(), kLeast);
  EXPECT_EQ(buffer->GetStats().capacity(), kCapacity);
  EXPECT_EQ(buffer->GetStats().room(), kLeast);
  for (int64_t i = 1; i <= kLeast + 1; ++i) EXPECT_EQ(Take(buffer.get()), i);
  EXPECT_EQ(last.Wait(), OkStatus());
  ExpectBalanced(*buffer);
}

TEST(TensorBufferSlowStartTest, FillsWhileStepsTake) {
  auto buffer = MakeBuffer(kCapacity);
  TakeFirst(buffer.get());
  const int64_t takes = (kCapacity - kLeast) * SlowStart::kTakesPerRecord;
  for (int64_t i = 1; i < takes; ++i) {
    PutResult last = Fill(buffer.get());
    EXPECT_EQ(buffer->Size(), kLeast + i / SlowStart::kTakesPerRecord);
    EXPECT_EQ(Take(buffer.get()), i);
    EXPECT_EQ(last.Wait(), OkStatus());
  }
  EXPECT_EQ(Put(buffer.get(), int64_t{0}), OkStatus());
  EXPECT_EQ(buffer->Size(), kCapacity);
  Empty(buffer.get());
}

TEST(TensorBufferSlowStartTest, AStepThatWaitsDoublesTheRoom) {
  auto buffer = MakeBuffer(kCapacity);
  TakeFirst(buffer.get());
  PutResult last = Fill(buffer.get());
  Empty(buffer.get());
  EXPECT_EQ(last.Wait(), OkStatus());
  TakeFirst(buffer.get());
  PutResult next = Fill(buffer.get());
  EXPECT_EQ(buffer->Size(), 2 * kLeast);
  Empty(buffer.get());
}

TEST(TensorBufferSlowStartTest, FillsWhileTheProgramPauses) {
  auto buffer = MakeBuffer(kCapacity);
  TakeFirst(buffer.get());
  for (int64_t i = 1; i <= kCapacity; ++i) {
    // The put that finds no room gets it once nothing was taken for a second.
    EXPECT_EQ(Put(buffer.get(), i), OkStatus());
  }
  EXPECT_EQ(buffer->Size(), kCapacity);
  for (int64_t i = 1; i <= kCapacity; ++i) EXPECT_EQ(Take(buffer.get()), i);
}

TEST(TensorBufferSlowStartTest, DropsNothingBeforeItHasItsCapacity) {
  auto buffer = MakeBuffer(kCapacity);
  TakeFirst(buffer.get());
  for (int64_t i = 1; i <= kCapacity; ++i) {
    EXPECT_EQ(Put(buffer.get(), MakeRecord(i), kShortMillis), OkStatus());
  }
  EXPECT_EQ(buffer->GetStats().dropped(), 0);
  EXPECT_EQ(Put(buffer.get(), MakeRecord(kCapacity + 1), kShortMillis),
            OkStatus());
  EXPECT_EQ(buffer->GetStats().dropped(), 1);
  for (int64_t i = 1; i <= kCapacity; ++i) EXPECT_EQ(Take(buffer.get()), i);
}

TEST(TensorBufferSlowStartTest, BeginsAnewWhenAllRecordsAreDropped) {
  auto buffer = MakeBuffer(kCapacity);
  PutResult before = Fill(buffer.get());
  EXPECT_EQ(buffer->Size(), kCapacity);
  EXPECT_EQ(buffer->Discard(), kCapacity + 1);
  EXPECT_EQ(before.Wait(), OkStatus());
  TakeFirst(buffer.get());
  PutResult last = Fill(buffer.get());
  EXPECT_EQ(buffer->Size(), kLeast);
  Empty(buffer.get());
  EXPECT_EQ(last.Wait(), OkStatus());
}

TEST(TensorBufferSlowStartTest, ABufferThatEndsWhileItWatchesForAPause) {
  for (int i = 0; i < 50; ++i) {
    auto buffer = MakeBuffer(kCapacity);
    TakeFirst(buffer.get());
    PutResult last = Fill(buffer.get());
    buffer.reset();
    EXPECT_TRUE(errors::IsCancelled(last.Wait()));
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
