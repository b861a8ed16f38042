// SPDX-License-Identifier: Apache-2.0
//
// What a TensorBuffer measures, and the capacity that it chooses.

#include <gtest/gtest.h>

#include <chrono>  // NOLINT
#include <cstdint>
#include <string>
#include <thread>  // NOLINT

#include "absl/functional/function_ref.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// How long the tests let a call wait: much longer than everything else takes.
constexpr std::chrono::milliseconds kWait(20);
constexpr int64_t kWaitMicros = 20000;
constexpr int64_t kLeast = CapacityTuner::kLeastCapacity;

// Takes a record that comes only after kWait.
void TakeAfterWaiting(TensorBuffer* buffer) {
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  std::this_thread::sleep_for(kWait);
  EXPECT_EQ(Put(buffer, 0), OkStatus());
  EXPECT_EQ(take.Wait(), OkStatus());
}

// Fills the buffer. Returns whether a further put has to wait; its record has
// then been taken.
bool IsFull(TensorBuffer* buffer) {
  while (buffer->Size() < buffer->GetStats().capacity()) {
    EXPECT_EQ(Put(buffer, 0), OkStatus());
  }
  PutResult put;
  buffer->PutAsync(MakeRecord(0), kNoTimeout, nullptr, put.Callback());
  const bool waits = !put.done();
  Take(buffer);
  EXPECT_EQ(put.Wait(), OkStatus());
  return waits;
}

void Empty(TensorBuffer* buffer) {
  while (buffer->Size() > 0) Take(buffer);
}

TEST(TensorBufferStatsTest, MeasuresWaitsOfPuts) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(1), kNoTimeout, nullptr, put.Callback());
  EXPECT_EQ(buffer->GetStats().waiting_puts(), 1);
  std::this_thread::sleep_for(kWait);
  EXPECT_EQ(Take(buffer.get()), 0);
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.waiting_puts(), 0);
  EXPECT_EQ(stats.put_waits().calls(), 2);
  EXPECT_EQ(stats.put_waits().waits(), 1);
  EXPECT_GE(stats.put_waits().total_micros(), kWaitMicros);
  EXPECT_GE(stats.put_waits().p99_micros(), kWaitMicros * 7 / 8);
  EXPECT_EQ(stats.take_waits().calls(), 1);
  EXPECT_EQ(stats.take_waits().waits(), 0);
  Empty(buffer.get());
}

TEST(TensorBufferStatsTest, MeasuresWaitsOfTakes) {
  auto buffer = MakeBuffer(1);
  TakeAfterWaiting(buffer.get());
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.take_waits().calls(), 1);
  EXPECT_EQ(stats.take_waits().waits(), 1);
  EXPECT_GE(stats.take_waits().total_micros(), kWaitMicros);
  EXPECT_EQ(stats.put_waits().calls(), 1);
  EXPECT_EQ(stats.put_waits().waits(), 0);
}

TEST(TensorBufferStatsTest, CallsThatFailDoNotCount) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
  EXPECT_EQ(Put(buffer.get(), MakeRecord(1), kShortMillis), OkStatus());
  CancellationManager cancellation;
  cancellation.StartCancel();
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, &cancellation, put.Callback());
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
  Empty(buffer.get());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsCancelled(TakeStatus(buffer.get())));
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.put_waits().calls(), 1);
  EXPECT_EQ(stats.take_waits().calls(), 1);
  EXPECT_EQ(stats.dropped(), 1);
}

TEST(TensorBufferStatsTest, BytesIncludeThoseOfStrings) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), {Tensor(tstring(1000, 'x'))}), OkStatus());
  EXPECT_EQ(Put(buffer.get(), {Tensor(DT_INT8, TensorShape({500}))}),
            OkStatus());
  EXPECT_EQ(buffer->GetStats().bytes(), 1500 + sizeof(tstring));
  EXPECT_EQ(buffer->GetStats().records(), 2);
}

// The stage goes on while the bytes of its records are counted.
TEST(TensorBufferStatsTest, BytesAreThoseOfTheRecordsItCounts) {
  static TensorBuffer* counted;
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.capacity = 2;
  options.place_of = [](const Tensor& tensor,
                        absl::FunctionRef<std::string()> computed_on) {
    if (counted->Size() == 1) {
      EXPECT_EQ(Put(counted, 1), OkStatus());
    }
    return std::string();
  };
  const core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  counted = buffer.get();
  EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(buffer->Size(), 2);
  EXPECT_EQ(stats.records(), 1);
  EXPECT_EQ(stats.bytes(), sizeof(int64_t));
}

TEST(TensorBufferStatsTest, SaysWhyTheBufferIsClosed) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(buffer->GetStats().state(), "idle");
  buffer->Resume();
  EXPECT_EQ(buffer->GetStats().state(), "open");
  buffer->Close(errors::DataLoss("a broken file"));
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.state(), "closed");
  EXPECT_EQ(stats.error_code(), error::DATA_LOSS);
  EXPECT_EQ(stats.error_message(), "a broken file");
}

TEST(TunedCapacityTest, GrowsIfTheBufferIsFullAndEmptyByTurns) {
  auto buffer = MakeBuffer(kAutotune);
  EXPECT_EQ(buffer->GetStats().capacity(), kLeast);
  for (int64_t capacity : {2 * kLeast, 4 * kLeast, 8 * kLeast}) {
    EXPECT_TRUE(IsFull(buffer.get()));
    Empty(buffer.get());
    TakeAfterWaiting(buffer.get());
    EXPECT_TRUE(IsFull(buffer.get()));
    EXPECT_EQ(buffer->GetStats().capacity(), capacity);
  }
  Empty(buffer.get());
  ExpectBalanced(*buffer);
}

TEST(TunedCapacityTest, StaysWithoutWaits) {
  auto buffer = MakeBuffer(kAutotune);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(IsFull(buffer.get()));
  EXPECT_EQ(buffer->GetStats().capacity(), kLeast);
  Empty(buffer.get());
}

TEST(TunedCapacityTest, BytesThatAreMissingAreNoReasonToGrow) {
  // Room for one record, whose bytes are those of an int64_t.
  auto buffer = MakeBuffer(kAutotune, /*capacity_bytes=*/12);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
    PutResult put;
    buffer->PutAsync(MakeRecord(0), kNoTimeout, nullptr, put.Callback());
    EXPECT_FALSE(put.done());
    Empty(buffer.get());
    EXPECT_EQ(put.Wait(), OkStatus());
    Empty(buffer.get());
    TakeAfterWaiting(buffer.get());
  }
  EXPECT_EQ(buffer->GetStats().capacity(), kLeast);
}

TEST(TunedCapacityTest, ShrinksIfHalfOfItIsNeverNeeded) {
  auto buffer = MakeBuffer(kAutotune);
  for (int64_t capacity : {2 * kLeast, 4 * kLeast}) {
    IsFull(buffer.get());
    Empty(buffer.get());
    TakeAfterWaiting(buffer.get());
    IsFull(buffer.get());
    EXPECT_EQ(buffer->GetStats().capacity(), capacity);
  }
  while (buffer->Size() < 4 * kLeast) {
    EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
  }
  // The record of each put waits for a take, so that the buffer is always full.
  for (int64_t i = 0; i < 2 * CapacityTuner::kTakesToSettle &&
                      buffer->GetStats().capacity() == 4 * kLeast;
       ++i) {
    PutResult put;
    buffer->PutAsync(MakeRecord(0), kNoTimeout, nullptr, put.Callback());
    while (!put.done()) Take(buffer.get());
  }
  EXPECT_EQ(buffer->GetStats().capacity(), 2 * kLeast);
  Empty(buffer.get());
  ExpectBalanced(*buffer);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
