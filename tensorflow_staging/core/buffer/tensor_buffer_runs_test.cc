// SPDX-License-Identifier: Apache-2.0
//
// Tests which runs of its producers a TensorBuffer admits, and what the runs
// that fail mean for it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/run_holds.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsIn(const char* state, const TensorBuffer& buffer) {
  return absl::StrContains(buffer.DebugString(),
                           std::string("': ") + state + ", ");
}

// A run that may have to wait; the constructor begins it.
class WaitingRun {
 public:
  explicit WaitingRun(TensorBuffer* buffer,
                      CancellationManager* cancellation = nullptr)
      : run_(BeginRun(buffer)) {
    run_->AwaitAdmission(cancellation, admitted_.Callback());
  }

  bool admitted() const { return admitted_.done(); }
  Status Await() { return admitted_.Wait(); }
  void End() { run_->End(OkStatus()); }

 private:
  const std::unique_ptr<StagedRun> run_;
  PutResult admitted_;
};

// A run reads `iterator`, and fails.
void FailRun(TensorBuffer* buffer, const TestIterator& iterator,
             const Status& status = errors::OutOfRange("end")) {
  const auto run = BeginRun(buffer);
  ASSERT_TRUE(run->is_admitted());
  ASSERT_EQ(run->AddReads(iterator.reads()), OkStatus());
  EXPECT_FALSE(run->End(status));
}

TEST(TensorBufferRunsTest, ANewAndAnOpenBufferAdmitRuns) {
  auto buffer = MakeBuffer(1);
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
  EXPECT_TRUE(IsIn("idle", *buffer)) << buffer->DebugString();
  buffer->Resume();
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferRunsTest, ABufferIsNewUntilARunPutsARecord) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_TRUE(buffer->IsNew());
  Take(buffer.get());
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 2), OkStatus());
  EXPECT_FALSE(buffer->IsNew());
}

TEST(TensorBufferRunsTest, AClosedBufferThatNothingOpensRefusesRuns) {
  auto buffer = MakeBuffer(1);
  auto active = BeginRun(buffer.get());
  buffer->Close(OkStatus());
  WaitingRun waiting(buffer.get());
  EXPECT_FALSE(waiting.admitted());
  active.reset();
  const Status status = waiting.Await();
  EXPECT_TRUE(absl::StrContains(status.message(), kHasEnded)) << status;
  EXPECT_TRUE(BeginRun(buffer.get())->is_refused());
  PutResult late;
  buffer->AwaitRun(1, nullptr, nullptr, late.Callback());
  EXPECT_TRUE(absl::StrContains(late.Wait().message(), kHasEnded));
  buffer->Resume();
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferRunsTest, ARunWaitsAtTheEndOfDataThatMayChange) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  FailRun(buffer.get(), iterator);
  buffer->Close(OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  WaitingRun run(buffer.get());
  EXPECT_FALSE(run.admitted());
  iterator.Change();
  EXPECT_EQ(run.Await(), OkStatus());
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
}

TEST(TensorBufferRunsTest, ResumeAlsoAdmitsWaitingRuns) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  FailRun(buffer.get(), iterator);
  buffer->Close(OkStatus());
  WaitingRun run(buffer.get());
  EXPECT_FALSE(run.admitted());
  buffer->Resume();
  EXPECT_EQ(run.Await(), OkStatus());
}

TEST(TensorBufferRunsTest, CancelEndsWaitingRuns) {
  auto held = MakeBuffer(1);
  held->BeginHold(nullptr)();
  auto closed = MakeBuffer(1);
  TestIterator iterator;
  FailRun(closed.get(), iterator);
  closed->Close(OkStatus());
  for (TensorBuffer* buffer : {held.get(), closed.get()}) {
    WaitingRun waiting(buffer);
    EXPECT_FALSE(waiting.admitted());
    buffer->Cancel();
    EXPECT_TRUE(errors::IsCancelled(waiting.Await()));
    EXPECT_TRUE(errors::IsCancelled(WaitingRun(buffer).Await()));
  }
}

TEST(TensorBufferRunsTest, ACancellationEndsOnlyItsOwnWaitingRun) {
  auto buffer = MakeBuffer(1);
  buffer->BeginHold(nullptr)();
  CancellationManager cancellation;
  WaitingRun cancelled(buffer.get(), &cancellation), other(buffer.get());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(cancelled.Await()));
  EXPECT_TRUE(
      errors::IsCancelled(WaitingRun(buffer.get(), &cancellation).Await()));
  EXPECT_FALSE(other.admitted());
  buffer->EndHold(nullptr);
  EXPECT_EQ(other.Await(), OkStatus());
}

TEST(TensorBufferRunsTest, DestructionCancelsWaitingRuns) {
  PutResult run;
  std::atomic<int64_t> admitted_at{0};
  {
    auto buffer = MakeBuffer(1);
    buffer->BeginHold(nullptr)();
    buffer->AwaitRun(1, nullptr, &admitted_at, run.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(run.Wait()));
}

TEST(TensorBufferRunsTest, CloseWaitsForTheRecordsOfTheActiveRuns) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  auto active = BeginRun(buffer.get());
  FailRun(buffer.get(), iterator);
  buffer->Close(OkStatus());
  WaitingRun late(buffer.get());
  EXPECT_FALSE(late.admitted());
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_FALSE(first.done());
  EXPECT_EQ(Put(active.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
  EXPECT_FALSE(second.done());
  active.reset();
  EXPECT_TRUE(errors::IsOutOfRange(second.Wait()));
  EXPECT_FALSE(late.admitted());
  buffer->Cancel();
}

TEST(TensorBufferRunsTest, AnErrorWaitsOnlyForTheRunsOfItsProducer) {
  const Status cause = errors::DataLoss("cause");
  auto buffer = MakeBuffer(1);
  const auto of_another = BeginRun(buffer.get(), /*producer=*/2);
  auto earlier = BeginRun(buffer.get());
  BeginRun(buffer.get())->End(cause);
  buffer->Close(cause);
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_EQ(Put(earlier.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
  EXPECT_FALSE(second.done());
  earlier.reset();
  EXPECT_EQ(second.Wait(), cause);
  // Its record is not lost either.
  EXPECT_EQ(Put(of_another.get(), 2), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
}

TEST(TensorBufferRunsTest, TheFirstCloseWinsAlsoWhileRunsAreActive) {
  auto buffer = MakeBuffer(1);
  const Status cause = errors::DataLoss("first");
  auto active = BeginRun(buffer.get());
  buffer->Close(cause);
  buffer->Close(errors::Internal("second"));
  active.reset();
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferRunsTest, CancelClosesABufferThatIsEnding) {
  auto buffer = MakeBuffer(1);
  const auto active = BeginRun(buffer.get());
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->Close(OkStatus());
  EXPECT_FALSE(take.done());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
}

// A producer whose run has failed may be slow to call Close.
TEST(TensorBufferRunsTest, ALateCloseDoesNotEndTheNewData) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  TestIterator iterator;
  FailRun(buffer.get(), iterator);
  iterator.Change();
  buffer->Close(OkStatus());
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
  // The next Close belongs to the new data.
  const Status cause = errors::DataLoss("of the new data");
  FailRun(buffer.get(), iterator, cause);
  buffer->Close(cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferRunsTest, EachProducerMayCallCloseLate) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  FailRun(buffer.get(), iterator);
  FailRun(buffer.get(), iterator);
  FailRun(buffer.get(), iterator);
  buffer->Close(OkStatus());
  iterator.Change();
  for (int late = 0; late < 2; ++late) buffer->Close(OkStatus());
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
}

// A stage that joins sources ends when all of them have.
TEST(TensorBufferRunsTest, TheEndWasFoundByAllThatHaveFailed) {
  auto buffer = MakeBuffer(1);
  TestIterator one, other;
  FailRun(buffer.get(), one);
  FailRun(buffer.get(), other);
  buffer->Close(OkStatus());
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
  const ReadSet& reads = take.taken().reads;
  EXPECT_EQ(std::distance(reads.begin(), reads.end()), 2);
}

TEST(TensorBufferRunsTest, AStaleRunThatFailsIsToBeRepeated) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  ASSERT_EQ(run->AddReads(iterator.reads()), OkStatus());
  iterator.Change();
  EXPECT_TRUE(run->End(errors::OutOfRange("end")));
}

TEST(TensorBufferRunsTest, ASuccessOfAStaleRunIsNone) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  ASSERT_EQ(run->AddReads(iterator.reads()), OkStatus());
  iterator.Change();
  EXPECT_EQ(Put(run.get(), 1), OkStatus());
  EXPECT_FALSE(run->End(OkStatus()));
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 1);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferRunsTest, OneCurrentRunThatFailsIsEnough) {
  auto buffer = MakeBuffer(1);
  TestIterator changes, stays;
  FailRun(buffer.get(), changes);
  FailRun(buffer.get(), stays);
  changes.Change();
  buffer->Close(OkStatus());
  EXPECT_TRUE(IsIn("closed", *buffer)) << buffer->DebugString();
  // What the stage waits for is what the current run had read.
  WaitingRun run(buffer.get());
  EXPECT_FALSE(run.admitted());
  stays.Change();
  EXPECT_EQ(run.Await(), OkStatus());
}

// Something may not be initialised yet when the stage begins.
TEST(TensorBufferRunsTest, ATakeTriesAgainAfterAFailedPreconditionAtFirst) {
  auto buffer = MakeBuffer(1);
  const Status cause = errors::FailedPrecondition("not initialised");
  for (int i = 0; i < 3; ++i) {
    WaitingRun run(buffer.get());
    EXPECT_EQ(run.admitted(), i == 0);
    TakeResult take;
    buffer->TakeAsync(nullptr, take.Callback());
    EXPECT_EQ(run.Await(), OkStatus());
    EXPECT_FALSE(take.done());
    BeginRun(buffer.get())->End(cause);
    buffer->Close(cause);
    EXPECT_FALSE(take.done());
    run.End();
    EXPECT_EQ(take.Wait(), cause);
  }
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 1), OkStatus());
  EXPECT_EQ(take.value(), 1);
  // After the first record, the same error is the end.
  BeginRun(buffer.get())->End(cause);
  buffer->Close(cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
  EXPECT_TRUE(BeginRun(buffer.get())->is_refused());
}

// Begins and ends a run of a producer that has read an element of `iterator`,
// but fails.
void FailRunWithElement(TensorBuffer* buffer, const TestIterator& iterator,
                        int64_t element, uint64_t producer = 1) {
  ASSERT_EQ(buffer->BeginRun(producer), RunBegin::kAdmitted);
  RunEnd end;
  end.producer = producer;
  end.reads = iterator.reads();
  end.unused.elements.push_back(
      {*end.reads.begin(), MakeRecord(element), Source::NextOrder()});
  buffer->EndRun(std::move(end));
}

TEST(TensorBufferRunsTest, WhatWasReadBeforeTheFirstRecordIsGivenBack) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  // The program skips this one: its producer has gone on.
  FailRunWithElement(buffer.get(), iterator, 0);
  FailRunWithElement(buffer.get(), iterator, 1);
  FailRunWithElement(buffer.get(), iterator, 2, /*producer=*/2);
  EXPECT_TRUE(iterator.TakeGivenBack().empty());
  buffer->Close(errors::FailedPrecondition("not initialised"));
  EXPECT_EQ(iterator.TakeGivenBack(), (std::vector<int64_t>{1, 2}));
}

// After a change, no Close follows the end of the run.
TEST(TensorBufferRunsTest, AChangeBeforeTheCloseGivesBackWhatTheFailedRunHad) {
  auto buffer = MakeBuffer(1);
  TestIterator other, changed;
  core::RefCountPtr<RunHolds> saving;
  changed.source()->AddReader(buffer.get(), &saving);
  ASSERT_EQ(buffer->BeginRun(/*producer=*/1), RunBegin::kAdmitted);
  RunEnd end;
  end.producer = 1;
  end.reads = other.reads();
  end.unused.elements.push_back(
      {*end.reads.begin(), MakeRecord(7), Source::NextOrder()});
  end.reads.Add(changed.reads());
  buffer->EndRun(std::move(end));
  changed.Change();
  EXPECT_EQ(buffer->BeginRun(/*producer=*/1), RunBegin::kAdmitted);
  EXPECT_EQ(other.TakeGivenBack(), std::vector<int64_t>{7});
}

TEST(TensorBufferRunsTest, AnotherErrorGivesNothingBack) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  FailRunWithElement(buffer.get(), iterator, 1);
  buffer->Close(errors::DataLoss("bad record"));
  EXPECT_TRUE(iterator.TakeGivenBack().empty());
}

TEST(TensorBufferRunsTest, WhatWaitedForAnEndDoesNotGoOnUnderALockOfTheEnd) {
  auto buffer = MakeBuffer(1);
  mutex locked_by_the_runtime;
  Notification paused, admitted;
  const auto notify = [&](Notification* notification) {
    return [&locked_by_the_runtime, notification](const Status&) {
      {
        mutex_lock l(locked_by_the_runtime);
      }
      notification->Notify();
    };
  };
  auto active = BeginRun(buffer.get());
  buffer->Pause(nullptr, nullptr, notify(&paused));
  {
    mutex_lock l(locked_by_the_runtime);
    active.reset();
  }
  paused.WaitForNotification();
  std::atomic<int64_t> admitted_at{0};
  buffer->AwaitRun(1, nullptr, &admitted_at, notify(&admitted));
  {
    mutex_lock l(locked_by_the_runtime);
    buffer->EndHold(nullptr);
  }
  admitted.WaitForNotification();
  EXPECT_GT(admitted_at, 0);
  buffer->EndRun({/*producer=*/1});
}

// Runs, takes and changes of the source race. The source counts up within a
// version, and a change begins the next one. Every accepted record is taken,
// discarded or still in the buffer, and no take receives a record of a version
// that had ended when the take began.
TEST(TensorBufferRunsTest, ChangesRaceWithRunsAndTakes) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 2;
  constexpr int kChanges = 300;
  constexpr int64_t kPerVersion = 1000000;
  auto buffer = MakeBuffer(3);
  buffer->Resume();
  TestIterator iterator;
  mutex iterator_lock;
  int64_t next = 0;  // Guarded by iterator_lock.
  std::atomic<int64_t> oldest{0};
  std::atomic<int64_t> taken{0};
  std::atomic<bool> stop{false};
  {
    thread::ThreadPool pool(Env::Default(), "stage", kProducers + kConsumers);
    for (int p = 0; p < kProducers; ++p) {
      pool.Schedule([&, p] {
        for (int64_t i = 0; !stop; ++i) {
          const auto run = BeginRun(buffer.get());
          if (!run->AwaitAdmission(nullptr).ok()) return;
          int64_t record;
          {
            mutex_lock l(iterator_lock);
            record = next++;
            EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
          }
          // Some runs fail, and some of the failed runs close the buffer.
          const bool fails = (i + p) % 7 == 0;
          if (!fails) Put(run.get(), record).IgnoreError();
          const Status end =
              fails ? errors::OutOfRange("end of sequence") : OkStatus();
          const bool is_stale = run->End(end);
          if (fails && !is_stale && (i + p) % 3 == 0) buffer->Close(OkStatus());
        }
      });
    }
    for (int c = 0; c < kConsumers; ++c) {
      pool.Schedule([&] {
        while (!stop) {
          const int64_t least = oldest;
          const int64_t record = Take(buffer.get());
          if (record < 0) continue;
          ++taken;
          EXPECT_GE(record, least);
        }
      });
    }
    for (int i = 1; i <= kChanges; ++i) {
      const int64_t before = taken;
      while (taken == before && !IsIn("closed", *buffer)) {
        std::this_thread::yield();
      }
      std::invoke(buffer->BeginHold(&iterator));
      {
        mutex_lock l(iterator_lock);
        next = i * kPerVersion;
        iterator.Change(/*step=*/i);
      }
      oldest = i * kPerVersion;
      buffer->EndHold(&iterator);
    }
    stop = true;
    buffer->Cancel();
  }
  EXPECT_EQ(buffer->GetStats().taken(), taken);
  ExpectBalanced(*buffer);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
