// SPDX-License-Identifier: Apache-2.0
//
// Tests that a TensorBuffer admits runs of the region, and restarts.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// A run of the region; the constructor begins it.
class StagedRun {
 public:
  explicit StagedRun(TensorBuffer* buffer,
                     CancellationManager* cancellation = nullptr)
      : buffer_(buffer) {
    buffer->BeginRunAsync(cancellation, begin_.Callback());
  }

  bool begun() const { return begin_.done(); }
  Status Begin() { return begin_.Wait(); }

  void End(bool has_put = true) { buffer_->EndRun(has_put); }

 private:
  TensorBuffer* const buffer_;
  PutResult begin_;
};

// A restart; the constructor begins it.
class Restart {
 public:
  explicit Restart(TensorBuffer* buffer,
                   CancellationManager* cancellation = nullptr)
      : buffer_(buffer) {
    buffer->RestartAsync(cancellation, begin_.Callback());
  }

  bool begun() const { return begin_.done(); }
  Status Begin() { return begin_.Wait(); }

  void End() { buffer_->EndRestart(); }

 private:
  TensorBuffer* const buffer_;
  PutResult begin_;
};

// Restarts the buffer; no run may be active.
void RestartNow(TensorBuffer* buffer) {
  Restart restart(buffer);
  ASSERT_TRUE(restart.begun());
  ASSERT_EQ(restart.Begin(), OkStatus());
  restart.End();
}

bool IsOpen(const TensorBuffer& buffer) {
  return absl::StrContains(buffer.DebugString(), "': open, ");
}

TEST(TensorBufferRestartTest, ANewAndAnOpenBufferAdmitRuns) {
  auto buffer = MakeBuffer(1);
  StagedRun first(buffer.get());
  EXPECT_EQ(first.Begin(), OkStatus());
  EXPECT_TRUE(absl::StrContains(buffer->DebugString(), "': idle, "));
  buffer->Resume();
  StagedRun second(buffer.get());
  EXPECT_EQ(second.Begin(), OkStatus());
  first.End();
  second.End();
}

TEST(TensorBufferRestartTest, TheOldRecordsAreDiscardedAndCounted) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(3), kNoTimeout, nullptr, waiting.Callback());
  Restart restart(buffer.get());
  EXPECT_EQ(restart.Begin(), OkStatus());
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 4), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  restart.End();
  EXPECT_EQ(buffer->GetCounters().discarded, 4);
  ExpectBalanced(*buffer);
  EXPECT_EQ(Put(buffer.get(), 5), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 5);
}

TEST(TensorBufferRestartTest, TheBytesOfTheOldRecordsNoLongerCount) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  const Record record = {Tensor(DT_INT8, TensorShape({60}))};
  EXPECT_EQ(Put(buffer.get(), record), OkStatus());
  RestartNow(buffer.get());
  EXPECT_EQ(Put(buffer.get(), MakeRecord(1)), OkStatus());
  EXPECT_EQ(Put(buffer.get(), record), OkStatus());
}

TEST(TensorBufferRestartTest, ARestartWaitsForTheActiveRuns) {
  auto buffer = MakeBuffer(1);
  StagedRun first(buffer.get()), second(buffer.get());
  Restart restart(buffer.get());
  first.End();
  EXPECT_FALSE(restart.begun());
  second.End(/*has_put=*/false);
  EXPECT_EQ(restart.Begin(), OkStatus());
  restart.End();
}

TEST(TensorBufferRestartTest, NoRunBeginsDuringARestart) {
  auto buffer = MakeBuffer(1);
  StagedRun old_run(buffer.get());
  Restart restart(buffer.get());
  StagedRun new_run(buffer.get());
  EXPECT_FALSE(new_run.begun());
  old_run.End();
  EXPECT_EQ(restart.Begin(), OkStatus());
  EXPECT_FALSE(new_run.begun());
  restart.End();
  EXPECT_EQ(new_run.Begin(), OkStatus());
  new_run.End();
}

TEST(TensorBufferRestartTest, OverlappingRestartsEndWithTheLast) {
  auto buffer = MakeBuffer(1);
  Restart first(buffer.get()), second(buffer.get());
  EXPECT_EQ(first.Begin(), OkStatus());
  EXPECT_EQ(second.Begin(), OkStatus());
  StagedRun run(buffer.get());
  first.End();
  EXPECT_FALSE(run.begun());
  second.End();
  EXPECT_EQ(run.Begin(), OkStatus());
  run.End();
}

TEST(TensorBufferRestartTest, ATakeWaitsThroughARestart) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  TakeResult before, during;
  buffer->TakeAsync(nullptr, before.Callback());
  Restart restart(buffer.get());
  buffer->TakeAsync(nullptr, during.Callback());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  restart.End();
  EXPECT_FALSE(before.done());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 3), OkStatus());
  EXPECT_EQ(before.value(), 2);
  EXPECT_EQ(during.value(), 3);
}

TEST(TensorBufferRestartTest, AClosedBufferOpensAndAdmitsWaitingRuns) {
  auto buffer = MakeBuffer(2);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  buffer->Close(errors::DataLoss("of the old data"));
  StagedRun run(buffer.get());
  EXPECT_FALSE(run.begun());
  RestartNow(buffer.get());
  EXPECT_EQ(run.Begin(), OkStatus());
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
  run.End();
  buffer->Close(OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
}

TEST(TensorBufferRestartTest, ResumeAlsoAdmitsWaitingRuns) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  StagedRun run(buffer.get());
  EXPECT_FALSE(run.begun());
  buffer->Resume();
  EXPECT_EQ(run.Begin(), OkStatus());
  run.End();
}

TEST(TensorBufferRestartTest, ANewBufferStaysIdle) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.idle_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  RestartNow(buffer.get());
  EXPECT_TRUE(errors::IsFailedPrecondition(TakeStatus(buffer.get())));
}

TEST(TensorBufferRestartTest, ACancelledBufferStaysCancelled) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  buffer->Cancel();
  RestartNow(buffer.get());
  EXPECT_TRUE(errors::IsCancelled(TakeStatus(buffer.get())));
  EXPECT_TRUE(errors::IsCancelled(StagedRun(buffer.get()).Begin()));
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 1)));
}

TEST(TensorBufferRestartTest, CancelEndsWaitingRuns) {
  for (const bool closed : {false, true}) {
    auto buffer = MakeBuffer(1);
    if (closed) buffer->Close(OkStatus());
    Restart restart(buffer.get());
    if (closed) restart.End();
    if (closed) buffer->Close(OkStatus());
    StagedRun waiting(buffer.get());
    EXPECT_FALSE(waiting.begun());
    buffer->Cancel();
    EXPECT_TRUE(errors::IsCancelled(waiting.Begin()));
    EXPECT_TRUE(errors::IsCancelled(StagedRun(buffer.get()).Begin()));
    if (!closed) restart.End();
  }
}

TEST(TensorBufferRestartTest, ACancellationEndsOnlyItsOwnWaitingRun) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  CancellationManager cancellation;
  StagedRun cancelled(buffer.get(), &cancellation), other(buffer.get());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(cancelled.Begin()));
  RestartNow(buffer.get());
  EXPECT_EQ(other.Begin(), OkStatus());
  other.End();
}

TEST(TensorBufferRestartTest, ACancelledRestartEnds) {
  auto buffer = MakeBuffer(1);
  StagedRun active(buffer.get());
  CancellationManager cancellation;
  Restart cancelled(buffer.get(), &cancellation);
  StagedRun waiting(buffer.get());
  EXPECT_FALSE(waiting.begun());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(cancelled.Begin()));
  EXPECT_EQ(waiting.Begin(), OkStatus());
  Restart too_late(buffer.get(), &cancellation);
  EXPECT_TRUE(errors::IsCancelled(too_late.Begin()));
  StagedRun next(buffer.get());
  EXPECT_EQ(next.Begin(), OkStatus());
  for (StagedRun* run : {&active, &waiting, &next}) run->End();
}

TEST(TensorBufferRestartTest, ARestartTimesOutAndReportsTheActiveRuns) {
  TensorBuffer::Options options;
  options.name = "my_stage";
  options.restart_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  StagedRun slow(buffer.get());
  const Status status = Restart(buffer.get()).Begin();
  EXPECT_TRUE(errors::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      "Stage 'my_stage' could not restart: 1 of its runs had not ended"))
      << status;
  StagedRun next(buffer.get());
  EXPECT_EQ(next.Begin(), OkStatus());
  slow.End();
  next.End();
}

TEST(TensorBufferRestartTest, DestructionCancelsWaitingRunsAndRestarts) {
  PutResult run, restart;
  {
    auto buffer = MakeBuffer(1);
    StagedRun active(buffer.get());
    EXPECT_EQ(active.Begin(), OkStatus());
    buffer->RestartAsync(nullptr, restart.Callback());
    buffer->BeginRunAsync(nullptr, run.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(run.Wait()));
  EXPECT_TRUE(errors::IsCancelled(restart.Wait()));
}

TEST(TensorBufferRestartTest, CloseWaitsForTheRecordsOfTheActiveRuns) {
  auto buffer = MakeBuffer(1);
  StagedRun ended(buffer.get()), active(buffer.get());
  ended.End(/*has_put=*/false);
  buffer->Close(OkStatus());
  StagedRun late(buffer.get());
  EXPECT_FALSE(late.begun());
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_FALSE(first.done());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
  EXPECT_FALSE(second.done());
  active.End();
  EXPECT_TRUE(errors::IsOutOfRange(second.Wait()));
  EXPECT_FALSE(late.begun());
  buffer->Cancel();
}

TEST(TensorBufferRestartTest, TheFirstCloseWinsAlsoWhileRunsAreActive) {
  auto buffer = MakeBuffer(1);
  const Status cause = errors::DataLoss("first");
  StagedRun active(buffer.get());
  buffer->Close(cause);
  buffer->Close(errors::Internal("second"));
  active.End(/*has_put=*/false);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferRestartTest, CancelClosesABufferThatIsEnding) {
  auto buffer = MakeBuffer(1);
  StagedRun active(buffer.get());
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->Close(OkStatus());
  EXPECT_FALSE(take.done());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
  active.End();
}

// A producer whose run has failed may be slow to call Close.
TEST(TensorBufferRestartTest, ALateCloseDoesNotEndTheNewData) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  StagedRun failed(buffer.get());
  failed.End(/*has_put=*/false);
  RestartNow(buffer.get());
  buffer->Close(OkStatus());
  EXPECT_TRUE(IsOpen(*buffer)) << buffer->DebugString();
  // The next Close belongs to the new data.
  StagedRun next(buffer.get());
  EXPECT_EQ(next.Begin(), OkStatus());
  next.End(/*has_put=*/false);
  const Status cause = errors::DataLoss("of the new data");
  buffer->Close(cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferRestartTest, ALateCloseIsIgnoredOnceTheActiveRunsHaveEnded) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  StagedRun failed(buffer.get());
  failed.End(/*has_put=*/false);
  RestartNow(buffer.get());
  StagedRun active(buffer.get());
  buffer->Close(OkStatus());
  StagedRun waiting(buffer.get());
  EXPECT_FALSE(waiting.begun());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  active.End();
  EXPECT_EQ(waiting.Begin(), OkStatus());
  EXPECT_TRUE(IsOpen(*buffer)) << buffer->DebugString();
  waiting.End();
}

TEST(TensorBufferRestartTest, ACloseDuringARestartBelongsToTheOldData) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  StagedRun failed(buffer.get());
  Restart restart(buffer.get());
  failed.End(/*has_put=*/false);
  buffer->Close(OkStatus());
  restart.End();
  EXPECT_TRUE(IsOpen(*buffer)) << buffer->DebugString();
  // That Close has come, so the next one belongs to the new data. It may
  // overtake the end of its run.
  StagedRun next(buffer.get());
  buffer->Close(OkStatus());
  next.End(/*has_put=*/false);
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
}

TEST(TensorBufferRestartTest, ACallbackOfARestartMayCallTheBuffer) {
  auto buffer = MakeBuffer(1);
  StagedRun active(buffer.get());
  Notification restarted;
  buffer->RestartAsync(nullptr, [&](const Status&) {
    buffer->EndRestart();
    restarted.Notify();
  });
  active.End();
  restarted.WaitForNotification();
  EXPECT_EQ(StagedRun(buffer.get()).Begin(), OkStatus());
  buffer->EndRun(true);
}

TEST(TensorBufferRestartTest, WhatWaitedForAnEndDoesNotGoOnUnderALockOfTheEnd) {
  auto buffer = MakeBuffer(1);
  mutex locked_by_the_runtime;
  const auto end = [&](void (TensorBuffer::*end)()) {
    mutex_lock l(locked_by_the_runtime);
    (buffer.get()->*end)();
  };
  Notification restarted, after_restart, after_pause;
  const auto notify = [&](Notification* notification) {
    return [&locked_by_the_runtime, notification](const Status&) {
      { mutex_lock l(locked_by_the_runtime); }
      notification->Notify();
    };
  };
  StagedRun active(buffer.get());
  buffer->RestartAsync(nullptr, notify(&restarted));
  {
    mutex_lock l(locked_by_the_runtime);
    active.End();
  }
  restarted.WaitForNotification();
  buffer->BeginRunAsync(nullptr, notify(&after_restart));
  end(&TensorBuffer::EndRestart);
  after_restart.WaitForNotification();
  buffer->EndRun(true);
  buffer->PauseAsync(nullptr, [](const Status&) {});
  buffer->BeginRunAsync(nullptr, notify(&after_pause));
  end(&TensorBuffer::EndPause);
  after_pause.WaitForNotification();
  buffer->EndRun(true);
}

// Runs, takes and restarts race. The source counts up within a generation, and
// a restart begins the next generation. Every accepted record is taken,
// discarded or still in the buffer, and no take receives a record of a
// generation that ended before the take began.
TEST(TensorBufferRestartTest, RestartsRaceWithRunsAndTakes) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 2;
  constexpr int kRestarts = 300;
  constexpr int64_t kPerGeneration = 1000000;
  auto buffer = MakeBuffer(3);
  buffer->Resume();
  std::atomic<int64_t> source{0};  // The next record.
  std::atomic<int> readers{0};
  std::atomic<int64_t> generation{0};
  std::atomic<int64_t> taken{0};
  std::atomic<bool> stop{false};
  {
    thread::ThreadPool pool(Env::Default(), "stage", kProducers + kConsumers);
    for (int p = 0; p < kProducers; ++p) {
      pool.Schedule([&, p] {
        for (int64_t i = 0; !stop; ++i) {
          StagedRun run(buffer.get());
          if (!run.Begin().ok()) return;
          ++readers;
          const int64_t record = source.fetch_add(1);
          --readers;
          // Some runs fail, and some of the failed runs close the buffer.
          const bool fails = (i + p) % 7 == 0;
          const bool has_put = !fails && Put(buffer.get(), record).ok();
          run.End(has_put);
          if (fails && (i + p) % 3 == 0) buffer->Close(OkStatus());
        }
      });
    }
    for (int c = 0; c < kConsumers; ++c) {
      pool.Schedule([&] {
        while (!stop) {
          const int64_t oldest = generation * kPerGeneration;
          const int64_t record = Take(buffer.get());
          if (record < 0) continue;
          ++taken;
          EXPECT_GE(record, oldest);
        }
      });
    }
    for (int i = 1; i <= kRestarts; ++i) {
      Restart restart(buffer.get());
      EXPECT_EQ(restart.Begin(), OkStatus());
      EXPECT_EQ(readers, 0);
      source = i * kPerGeneration;
      generation = i;
      restart.End();
    }
    stop = true;
    buffer->Cancel();
  }
  EXPECT_EQ(buffer->GetCounters().taken, taken);
  ExpectBalanced(*buffer);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
