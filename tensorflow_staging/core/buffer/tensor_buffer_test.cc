// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/tensor_buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// A record of `bytes` bytes.
Record RecordOfBytes(int64_t bytes) {
  return {Tensor(DT_INT8, TensorShape({bytes}))};
}

TEST(TensorBufferTest, TakesInTheOrderOfPuts) {
  auto buffer = MakeBuffer(3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(Put(buffer.get(), i), OkStatus());
  EXPECT_EQ(buffer->Size(), 3);
  EXPECT_EQ(buffer->TakenOrHeld(), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(Take(buffer.get()), i);
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->TakenOrHeld(), 3);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferTest, PutWithoutRoomWaitsForATake) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 0), OkStatus());
  PutResult first, second;
  buffer->PutAsync(MakeRecord(1), kNoTimeout, nullptr, first.Callback());
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, second.Callback());
  EXPECT_FALSE(first.done());
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(first.Wait(), OkStatus());
  EXPECT_FALSE(second.done());
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(second.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferTest, WaitingTakesAreServedInOrder) {
  auto buffer = MakeBuffer(1);
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
  EXPECT_FALSE(second.done());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(second.value(), 2);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferTest, AwaitNoTakeEndsWithTheLastWait) {
  auto buffer = MakeBuffer(1);
  int calls = 0;
  const auto count = [&calls](const Status&) { ++calls; };
  EXPECT_FALSE(buffer->AwaitNoTake(count));
  CancellationManager cancellation;
  TakeResult served, cancelled;
  buffer->TakeAsync(nullptr, served.Callback());
  buffer->TakeAsync(&cancellation, cancelled.Callback());
  EXPECT_TRUE(buffer->AwaitNoTake(count));
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(calls, 0);
  cancellation.StartCancel();
  EXPECT_EQ(calls, 1);
  TakeResult later;
  buffer->TakeAsync(nullptr, later.Callback());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(calls, 1);
}

TEST(TensorBufferTest, ALatePutDoesNotOvertakeAWaitingOne) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  EXPECT_EQ(Put(buffer.get(), RecordOfBytes(60)), OkStatus());
  PutResult large, small;
  buffer->PutAsync(RecordOfBytes(60), kNoTimeout, nullptr, large.Callback());
  buffer->PutAsync(RecordOfBytes(10), kNoTimeout, nullptr, small.Callback());
  EXPECT_FALSE(large.done());
  EXPECT_FALSE(small.done());
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(large.Wait(), OkStatus());
  EXPECT_EQ(small.Wait(), OkStatus());
  EXPECT_EQ(buffer->Size(), 2);
}

TEST(TensorBufferTest, ARecordLargerThanTheBoundEntersAnEmptyBuffer) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  EXPECT_EQ(Put(buffer.get(), RecordOfBytes(1000)), OkStatus());
  PutResult next;
  buffer->PutAsync(RecordOfBytes(1), kNoTimeout, nullptr, next.Callback());
  EXPECT_FALSE(next.done());
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(next.Wait(), OkStatus());
}

// Memory of a device, for a buffer.
class DeviceMemory : public AllocatorWrapper {
 public:
  DeviceMemory() : AllocatorWrapper(cpu_allocator()) {}

  AllocatorMemoryType GetMemoryType() const override {
    return AllocatorMemoryType::kDevice;
  }
};

TEST(TensorBufferTest, BytesOfADeviceHaveABoundOfTheirOwn) {
  DeviceMemory memory;
  const auto record = [&memory](int64_t on_host, int64_t on_device) {
    return Record{Tensor(DT_INT8, {on_host}),
                  Tensor(&memory, DT_INT8, {on_device})};
  };
  TensorBuffer::Options options;
  options.capacity = 10;
  options.capacity_bytes = 1000;
  options.device_capacity_bytes = 100;
  options.place_of = [](const Tensor& tensor,
                        absl::FunctionRef<std::string()> computed_on) {
    return tensor.GetMemoryType() == AllocatorMemoryType::kDevice
               ? computed_on()
               : std::string();
  };
  const core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  buffer->KeepRecordsOn("GPU:0, with tensors 0 on the host");
  EXPECT_EQ(Put(buffer.get(), record(400, 40)), OkStatus());
  EXPECT_EQ(Put(buffer.get(), record(400, 60)), OkStatus());
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.bytes(), 900);
  ASSERT_EQ(stats.devices_size(), 1);
  EXPECT_EQ(stats.devices(0), "GPU:0");
  EXPECT_EQ(stats.device_bytes(0), 100);
  EXPECT_EQ(stats.device_capacity_bytes(), 100);
  PutResult of_device, of_host;
  buffer->PutAsync(record(1, 1), kNoTimeout, nullptr, of_device.Callback());
  EXPECT_FALSE(of_device.done());
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(of_device.Wait(), OkStatus());
  buffer->PutAsync(record(600, 1), kNoTimeout, nullptr, of_host.Callback());
  EXPECT_FALSE(of_host.done());
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(of_host.Wait(), OkStatus());
  // An empty buffer admits any.
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(TakeStatus(buffer.get()), OkStatus());
  EXPECT_EQ(Put(buffer.get(), record(5000, 5000)), OkStatus());
}

TEST(TensorBufferTest, ACancelledLargePutLetsTheSmallerOneBehindItIn) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  CancellationManager cancellation;
  EXPECT_EQ(Put(buffer.get(), RecordOfBytes(60)), OkStatus());
  PutResult large, small;
  buffer->PutAsync(RecordOfBytes(60), kNoTimeout, &cancellation,
                   large.Callback());
  buffer->PutAsync(RecordOfBytes(10), kNoTimeout, nullptr, small.Callback());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(large.Wait()));
  EXPECT_EQ(small.Wait(), OkStatus());
  EXPECT_EQ(buffer->Size(), 2);
}

TEST(TensorBufferTest, APutThatTimesOutIsDroppedCountedAndOk) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(Put(buffer.get(), MakeRecord(2), kShortMillis), OkStatus());
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.put(), 1);
  EXPECT_EQ(stats.dropped(), 1);
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(buffer->Size(), 0);
}

TEST(TensorBufferTest, APutThatGotRoomInTimeIsNotDropped) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult in_time;
  buffer->PutAsync(MakeRecord(2), /*timeout_millis=*/3600 * 1000, nullptr,
                   in_time.Callback());
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(in_time.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
  EXPECT_EQ(buffer->GetStats().dropped(), 0);
}

TEST(TensorBufferTest, TheLongestTimeoutIsRepresentable) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), std::numeric_limits<int64_t>::max(), nullptr,
                   put.Callback());
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(put.Wait(), OkStatus());
  EXPECT_EQ(buffer->GetStats().dropped(), 0);
}

TEST(TensorBufferTest, TheErrorOfAnUnfedTakeNamesTheStageAndTheHook) {
  TensorBuffer::Options options;
  options.name = "my_stage";
  options.idle_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  const Status status = TakeStatus(buffer.get());
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("my_stage"), absl::string_view::npos);
  EXPECT_NE(status.message().find("tf.make_prefetch_hook()"),
            absl::string_view::npos);
}

TEST(TensorBufferTest, ResumeEndsTheIdleDeadline) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.idle_timeout_millis = 3600 * 1000;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  TakeResult before;
  buffer->TakeAsync(nullptr, before.Callback());
  buffer->Resume();
  TakeResult after;
  buffer->TakeAsync(nullptr, after.Callback());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(before.value(), 1);
  EXPECT_EQ(after.value(), 2);
}

TEST(TensorBufferTest, CloseDrainsThenEndsTheData) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  buffer->Close(OkStatus());
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(Take(buffer.get()), 2);
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 3)));
}

TEST(TensorBufferTest, CloseWithAnErrorDrainsThenReportsTheCause) {
  auto buffer = MakeBuffer(2);
  const Status cause = errors::DataLoss("truncated at 42");
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  buffer->Close(cause);
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferTest, CloseEndsWaitingTakes) {
  auto buffer = MakeBuffer(1);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->Close(OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
}

// A finished record that waits for room when its stage ends is not lost.
TEST(TensorBufferTest, AWaitingPutIsServedAfterClose) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, put.Callback());
  const Status cause = errors::DataLoss("cause");
  buffer->Close(cause);
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 3)));
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(put.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferTest, CancelEndsAPutThatWaitsInAClosedBuffer) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, put.Callback());
  buffer->Close(OkStatus());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
}

TEST(TensorBufferTest, TheFirstCloseWins) {
  auto buffer = MakeBuffer(1);
  const Status cause = errors::DataLoss("first");
  buffer->Close(cause);
  buffer->Close(OkStatus());
  buffer->Cancel();
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferTest, CancelEndsWaitingAndLaterCalls) {
  auto buffer = MakeBuffer(1);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsCancelled(take.Wait()));
  EXPECT_TRUE(errors::IsCancelled(TakeStatus(buffer.get())));
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 1)));
}

TEST(TensorBufferTest, CancelEndsAWaitingPutAndKeepsTheRecords) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, put.Callback());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_TRUE(errors::IsCancelled(TakeStatus(buffer.get())));
}

TEST(TensorBufferTest, CancelKeepsTheRecordsOfRunsThatAreUnderWay) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  const auto waiting = BeginRun(buffer.get());
  const auto computing = BeginRun(buffer.get());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, put.Callback(),
                   waiting.get());
  buffer->Cancel();
  EXPECT_EQ(put.Wait(), OkStatus());
  EXPECT_EQ(Put(computing.get(), 3), OkStatus());
  // A run that begins too late has read nothing.
  EXPECT_TRUE(errors::IsCancelled(Put(BeginRun(buffer.get()).get(), 5)));
  EXPECT_EQ(Take(buffer.get()), 1);
  buffer->Resume();
  PutResult next;
  buffer->PutAsync(MakeRecord(4), kNoTimeout, nullptr, next.Callback());
  EXPECT_FALSE(next.done());
  EXPECT_EQ(Take(buffer.get()), 2);
  EXPECT_EQ(Take(buffer.get()), 3);
  EXPECT_EQ(Take(buffer.get()), 4);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferTest, ACancelledBufferCanBeClosedWithTheCause) {
  auto buffer = MakeBuffer(1);
  const Status cause = errors::DataLoss("cause");
  buffer->Cancel();
  buffer->Close(cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferTest, ResumeOpensFromEveryStateAndKeepsTheRecords) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  buffer->Cancel();
  buffer->Resume();
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  buffer->Close(OkStatus());
  buffer->Resume();
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(Take(buffer.get()), 2);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  EXPECT_FALSE(take.done());
  EXPECT_EQ(Put(buffer.get(), 3), OkStatus());
  EXPECT_EQ(take.value(), 3);
}

TEST(TensorBufferTest, ResumeKeepsAnErrorUntilATakeHasGotIt) {
  auto buffer = MakeBuffer(2);
  const Status cause = errors::DataLoss("truncated at 42");
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  buffer->Close(cause);
  buffer->Cancel();
  buffer->Resume();
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
  buffer->Resume();
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
}

TEST(TensorBufferTest, ACancelledStepEndsOnlyItsOwnWaits) {
  auto buffer = MakeBuffer(1);
  CancellationManager cancellation;
  TakeResult cancelled, other;
  buffer->TakeAsync(&cancellation, cancelled.Callback());
  buffer->TakeAsync(nullptr, other.Callback());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(cancelled.Wait()));
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(other.value(), 1);
}

TEST(TensorBufferTest, AnAlreadyCancelledStepDoesNotWait) {
  auto buffer = MakeBuffer(1);
  CancellationManager cancellation;
  cancellation.StartCancel();
  TakeResult take;
  buffer->TakeAsync(&cancellation, take.Callback());
  EXPECT_TRUE(errors::IsCancelled(take.Wait()));
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult put;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, &cancellation, put.Callback());
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
}

TEST(TensorBufferTest, CancellationAfterTheEndOfATakeDoesNothing) {
  auto buffer = MakeBuffer(1);
  CancellationManager cancellation;
  TakeResult take;
  buffer->TakeAsync(&cancellation, take.Callback());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(take.value(), 1);
  cancellation.StartCancel();  // A second notification would crash.
}

TEST(TensorBufferTest, DestructionCancelsWaitingPutsAndTakes) {
  CancellationManager cancellation;
  TakeResult take, watched_take;
  PutResult put;
  {
    auto buffer = MakeBuffer(1);
    buffer->TakeAsync(nullptr, take.Callback());
    buffer->TakeAsync(&cancellation, watched_take.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(take.Wait()));
  EXPECT_TRUE(errors::IsCancelled(watched_take.Wait()));
  {
    auto buffer = MakeBuffer(1);
    EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
    buffer->PutAsync(MakeRecord(2), 3600 * 1000, &cancellation, put.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
  cancellation.StartCancel();
}

TEST(TensorBufferTest, ACallbackMayReleaseTheLastReference) {
  // In the thread of another call.
  {
    auto buffer = MakeBuffer(1);
    TensorBuffer* raw = buffer.get();
    raw->TakeAsync(nullptr, [ref = std::move(buffer)](
                                const Status&, TensorBuffer::Taken) mutable {
      ref.reset();
    });
    raw->Ref();
    EXPECT_EQ(Put(raw, 1), OkStatus());
    raw->Unref();
  }
  // In the timer's own thread.
  {
    TensorBuffer::Options options;
    options.idle_timeout_millis = kShortMillis;
    core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
    TensorBuffer* raw = buffer.get();
    Notification destroyed;
    raw->TakeAsync(nullptr, [&destroyed, ref = std::move(buffer)](
                                const Status&, TensorBuffer::Taken) mutable {
      ref.reset();
      destroyed.Notify();
    });
    destroyed.WaitForNotification();
  }
}

TEST(TensorBufferTest, ACallbackMayCallTheBuffer) {
  auto buffer = MakeBuffer(1);
  TakeResult second;
  buffer->TakeAsync(nullptr, [&](const Status&, TensorBuffer::Taken) {
    buffer->TakeAsync(nullptr, second.Callback());
  });
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_FALSE(second.done());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(second.value(), 2);
}

TEST(TensorBufferTest, MemoryUsedCountsTheRecordsEvenWithoutABound) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), RecordOfBytes(100)), OkStatus());
  EXPECT_EQ(buffer->MemoryUsed(), 100);
}

TEST(TensorBufferTest, DebugStringReportsStateAndCounts) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(buffer->DebugString(),
            "TensorBuffer 'prefetch': open, 1 of 2 records, 1 put, 0 taken, 0 "
            "dropped, 0 discarded, 0 runs active, 0 runs, 0 puts and 0 takes "
            "waiting");
}

// Producers and consumers share a small buffer: each record is taken once.
TEST(TensorBufferTest, ConcurrentPutsAndTakesLoseAndDuplicateNothing) {
  constexpr int kProducers = 8;
  constexpr int kConsumers = 8;
  constexpr int kRecords = 2000;  // Per producer.
  auto buffer = MakeBuffer(3);
  std::vector<std::atomic<int>> seen(kProducers * kRecords);
  {
    thread::ThreadPool consumers(Env::Default(), "consumers", kConsumers);
    for (int c = 0; c < kConsumers; ++c) {
      consumers.Schedule([&] {
        while (true) {
          const int64_t value = Take(buffer.get());
          if (value < 0) return;
          ++seen[value];
        }
      });
    }
    {
      thread::ThreadPool producers(Env::Default(), "producers", kProducers);
      for (int p = 0; p < kProducers; ++p) {
        producers.Schedule([&, p] {
          for (int i = 0; i < kRecords; ++i) {
            EXPECT_EQ(Put(buffer.get(), p * kRecords + i), OkStatus());
          }
        });
      }
    }
    buffer->Close(OkStatus());
  }
  for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 1);
  EXPECT_EQ(buffer->GetStats().taken(), kProducers * kRecords);
  ExpectBalanced(*buffer);
}

// A cancellation races with a put that meets a waiting take: every callback
// runs exactly once (a second notification would crash, a missing one would
// hang), and a take either receives the record or leaves it in the buffer.
TEST(TensorBufferTest, CancellationRacesWithAPut) {
  constexpr int kRounds = 2000;
  auto buffer = MakeBuffer(1);
  thread::ThreadPool canceller(Env::Default(), "canceller", 1);
  int64_t taken = 0;
  for (int i = 0; i < kRounds; ++i) {
    TakeResult take;
    PutResult put;
    Notification cancelled;
    CancellationManager cancellation;
    buffer->TakeAsync(&cancellation, take.Callback());
    canceller.Schedule([&] {
      cancellation.StartCancel();
      cancelled.Notify();
    });
    buffer->PutAsync(MakeRecord(i), kNoTimeout, nullptr, put.Callback());
    EXPECT_EQ(put.Wait(), OkStatus());
    cancelled.WaitForNotification();
    if (take.Wait().ok()) {
      EXPECT_EQ(take.value(), i);
    } else {
      EXPECT_EQ(Take(buffer.get()), i);
    }
    ++taken;
  }
  EXPECT_EQ(buffer->GetStats().taken(), taken);
  ExpectBalanced(*buffer);
}

// A deadline races with a take: a record is either taken or counted as dropped.
TEST(TensorBufferTest, TimeoutRacesWithATake) {
  constexpr int kRounds = 300;
  auto buffer = MakeBuffer(1);
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(Put(buffer.get(), 2 * i), OkStatus());
    PutResult put;
    buffer->PutAsync(MakeRecord(2 * i + 1), /*timeout_millis=*/1, nullptr,
                     put.Callback());
    if (i % 2 == 0) {
      EXPECT_EQ(put.Wait(), OkStatus());
    }
    EXPECT_EQ(Take(buffer.get()), 2 * i);
    EXPECT_EQ(put.Wait(), OkStatus());
    if (buffer->Size() == 1) {
      EXPECT_EQ(Take(buffer.get()), 2 * i + 1);
    }
  }
  const BufferStats stats = buffer->GetStats();
  EXPECT_EQ(stats.taken() + stats.dropped(), 2 * kRounds);
  EXPECT_GE(stats.dropped(), kRounds / 2);
  ExpectBalanced(*buffer);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
