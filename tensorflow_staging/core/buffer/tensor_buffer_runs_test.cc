// SPDX-License-Identifier: Apache-2.0
//
// Tests which runs of its producers a TensorBuffer admits, and what the runs
// that fail mean for it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
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
  StagedRun* get() const { return run_.get(); }
  void End() { run_->End(OkStatus()); }

 private:
  const std::unique_ptr<StagedRun> run_;
  PutResult admitted_;
};

// A run reads the next of an iterator, and fails.
void FailRun(TensorBuffer* buffer, TestIterator* iterator,
             const Status& status = errors::OutOfRange("end"),
             uint64_t producer = 1) {
  const auto run = BeginRun(buffer, producer);
  ASSERT_TRUE(run->is_admitted());
  iterator->Read(*run);
  EXPECT_FALSE(run->End(status));
}

// The same, and its producer reports it: the stage ends with `cause`, or with OK
// at the end of the data.
void EndStage(TensorBuffer* buffer, TestIterator* iterator,
              const Status& cause = OkStatus()) {
  FailRun(buffer, iterator, cause.ok() ? errors::OutOfRange("end") : cause);
  buffer->Close(cause);
}

TEST(TensorBufferRunsTest, ANewAndAnOpenBufferAdmitRuns) {
  auto buffer = MakeBuffer(1);
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
  EXPECT_TRUE(IsIn("idle", *buffer)) << buffer->DebugString();
  buffer->Resume();
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferRunsTest, ARunWaitsAtAnEndThatNoTakeHasGot) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  EndStage(buffer.get(), &iterator);
  WaitingRun run(buffer.get());
  EXPECT_FALSE(run.admitted());
  iterator.Change();
  EXPECT_EQ(run.Await(), OkStatus());
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
}

// As without a stage, each step that finds the end gets it.
TEST(TensorBufferRunsTest, TheProducersGoOnWhenATakeHasGotTheEnd) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  for (const bool waits : {false, true, false}) {
    FailRun(buffer.get(), &iterator);
    TakeResult take, next;
    if (waits) {
      buffer->TakeAsync(nullptr, take.Callback());
      buffer->TakeAsync(nullptr, next.Callback());
    }
    buffer->Close(OkStatus());
    WaitingRun run(buffer.get());
    if (!waits) {
      EXPECT_FALSE(run.admitted());
      buffer->TakeAsync(nullptr, take.Callback());
    }
    EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
    EXPECT_EQ(run.Await(), OkStatus());
    EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
    // The step has used it.
    EXPECT_EQ(iterator.Unused(), Numbers());
    if (waits) {
      // The end is for one take.
      EXPECT_FALSE(next.done());
      EXPECT_EQ(Put(run.get(), 7), OkStatus());
      EXPECT_EQ(next.value(), 7);
    }
  }
}

TEST(TensorBufferRunsTest, AnErrorThatATakeHasGotDoesNotComeAgain) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  const Status cause = errors::DataLoss("bad record");
  RunStage(buffer.get(), {&iterator});
  EndStage(buffer.get(), &iterator, cause);
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 2);
}

TEST(TensorBufferRunsTest, AnErrorThatNoTakeHasGotComesAgainAfterARestart) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  const Status cause = errors::DataLoss("bad record");
  RunStage(buffer.get(), {&iterator});
  EndStage(buffer.get(), &iterator, cause);
  buffer->Cancel();
  buffer->Resume();
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 1);
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(Take(buffer.get()), 1);
}

// A step may fetch what is no stage's data.
TEST(TensorBufferRunsTest, AnErrorWithoutAnElementStaysUntilATakeHasGotIt) {
  auto buffer = MakeBuffer(2);
  const Status cause = errors::DataLoss("of a queue");
  BeginRun(buffer.get())->End(cause);
  buffer->Close(cause);
  buffer->Cancel();
  buffer->Resume();
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferRunsTest, AnEndStaysIfItsProducersDoNotGoOn) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.goes_on = false;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  EndStage(buffer.get(), &iterator);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  }
  EXPECT_FALSE(BeginRun(buffer.get())->is_admitted());
  buffer->Resume();
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferRunsTest, ResumeAlsoAdmitsWaitingRuns) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  EndStage(buffer.get(), &iterator);
  WaitingRun run(buffer.get());
  EXPECT_FALSE(run.admitted());
  buffer->Resume();
  EXPECT_EQ(run.Await(), OkStatus());
}

TEST(TensorBufferRunsTest, CancelEndsWaitingRuns) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  WaitingRun waiting(buffer.get());
  EXPECT_FALSE(waiting.admitted());
  buffer->Cancel();
  EXPECT_TRUE(errors::IsCancelled(waiting.Await()));
  EXPECT_TRUE(errors::IsCancelled(WaitingRun(buffer.get()).Await()));
}

TEST(TensorBufferRunsTest, ACancellationEndsOnlyItsOwnWaitingRun) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  CancellationManager cancellation;
  WaitingRun cancelled(buffer.get(), &cancellation), other(buffer.get());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(cancelled.Await()));
  EXPECT_TRUE(
      errors::IsCancelled(WaitingRun(buffer.get(), &cancellation).Await()));
  EXPECT_FALSE(other.admitted());
  buffer->Resume();
  EXPECT_EQ(other.Await(), OkStatus());
}

TEST(TensorBufferRunsTest, DestructionCancelsWaitingRuns) {
  PutResult run;
  {
    auto buffer = MakeBuffer(1);
    buffer->Close(OkStatus());
    buffer->AwaitRun(1, nullptr, run.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(run.Wait()));
}

TEST(TensorBufferRunsTest, CloseWaitsForTheRecordsOfTheActiveRuns) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto puts = BeginRun(buffer.get(), /*producer=*/2);
  auto ends = BeginRun(buffer.get(), /*producer=*/3);
  EndStage(buffer.get(), &iterator);
  WaitingRun late(buffer.get());
  EXPECT_FALSE(late.admitted());
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_FALSE(first.done());
  EXPECT_EQ(Put(puts.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
  EXPECT_FALSE(second.done());
  EXPECT_FALSE(late.admitted());
  ends.reset();
  EXPECT_TRUE(errors::IsOutOfRange(second.Wait()));
  EXPECT_EQ(late.Await(), OkStatus());
}

// All that is left of a run that puts is to wait for room.
TEST(TensorBufferRunsTest, ThePutOfTheLastActiveRunEndsTheStage) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), {&iterator}, /*producer=*/2);
  const auto active = BeginRun(buffer.get(), /*producer=*/2);
  EXPECT_EQ(iterator.Read(*active), 1);
  EndStage(buffer.get(), &iterator);
  EXPECT_TRUE(IsIn("ending", *buffer)) << buffer->DebugString();
  PutResult put;
  buffer->PutAsync(MakeRecord(1), kNoTimeout, nullptr, put.Callback(),
                   active.get());
  EXPECT_FALSE(put.done());
  EXPECT_TRUE(IsIn("closed", *buffer)) << buffer->DebugString();
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(put.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  EXPECT_FALSE(active->End(OkStatus()));
}

TEST(TensorBufferRunsTest, WhatACancelledPutHasReadGoesBack) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), {&iterator});
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 1);
  CancellationManager cancellation;
  PutResult put;
  buffer->PutAsync(MakeRecord(1), kNoTimeout, &cancellation, put.Callback(),
                   run.get());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(put.Wait()));
  EXPECT_TRUE(run->End(put.Wait()));
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 1);
}

TEST(TensorBufferRunsTest, AnErrorWaitsOnlyForTheRunsOfItsProducer) {
  const Status cause = errors::DataLoss("cause");
  auto buffer = MakeBuffer(1);
  const auto of_another = BeginRun(buffer.get(), /*producer=*/2);
  const auto earlier = BeginRun(buffer.get());
  BeginRun(buffer.get())->End(cause);
  buffer->Close(cause);
  TakeResult first, second;
  buffer->TakeAsync(nullptr, first.Callback());
  buffer->TakeAsync(nullptr, second.Callback());
  EXPECT_FALSE(first.done());
  EXPECT_EQ(Put(earlier.get(), 1), OkStatus());
  EXPECT_EQ(first.value(), 1);
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

TEST(TensorBufferRunsTest, OfSeveralFailedRunsTheFirstEndsTheStage) {
  for (const bool is_late : {false, true}) {
    auto buffer = MakeBuffer(1);
    TestIterator iterator;
    const Status first = errors::DataLoss("first");
    const Status second = errors::DataLoss("second");
    FailRun(buffer.get(), &iterator, first, /*producer=*/1);
    FailRun(buffer.get(), &iterator, second, /*producer=*/2);
    buffer->Close(first);
    // The other producer finds the same again, unless the step was faster.
    if (!is_late) buffer->Close(second);
    EXPECT_EQ(iterator.Unused(), (Numbers{0, 1}));
    EXPECT_EQ(TakeStatus(buffer.get()), first);
    if (is_late) {
      buffer->Close(second);
      EXPECT_EQ(TakeStatus(buffer.get()), second);
    }
    EXPECT_EQ(RunStage(buffer.get(), {&iterator}), is_late ? 2 : 1);
  }
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
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  FailRun(buffer.get(), &iterator);
  iterator.Change();
  buffer->Close(OkStatus());
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
  // The next Close belongs to the new data.
  const Status cause = errors::DataLoss("of the new data");
  EndStage(buffer.get(), &iterator, cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
}

TEST(TensorBufferRunsTest, AnErrorWhoseElementWentBackEndsNoStage) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  const Status cause = errors::DataLoss("bad record");
  FailRun(buffer.get(), &iterator, cause);
  // Another read comes between the end of the run and what its producer says.
  EXPECT_EQ(iterator.ReadBeside(), 0);
  buffer->Close(cause);
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 1);
  EXPECT_EQ(Take(buffer.get()), 1);
}

TEST(TensorBufferRunsTest, EachProducerMayCallCloseLate) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  for (uint64_t producer : {1, 2, 3}) {
    FailRun(buffer.get(), &iterator, errors::OutOfRange("end"), producer);
  }
  buffer->Close(OkStatus());
  iterator.Change();
  EXPECT_TRUE(IsIn("open", *buffer)) << buffer->DebugString();
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 0);
}

TEST(TensorBufferRunsTest, AStaleRunThatFailsIsToBeRepeated) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  iterator.Change();
  EXPECT_TRUE(run->End(errors::OutOfRange("end")));
}

TEST(TensorBufferRunsTest, ASuccessOfAStaleRunIsNone) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  iterator.Change();
  EXPECT_EQ(Put(run.get(), 1), OkStatus());
  EXPECT_FALSE(run->End(OkStatus()));
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 1);
  ExpectBalanced(*buffer);
}

TEST(TensorBufferRunsTest, OneCurrentRunThatFailsIsEnough) {
  auto buffer = MakeBuffer(1);
  TestIterator changes(/*begin=*/0, /*end=*/0), stays(/*begin=*/0, /*end=*/0);
  FailRun(buffer.get(), &changes, errors::OutOfRange("end"), /*producer=*/1);
  FailRun(buffer.get(), &stays, errors::OutOfRange("end"), /*producer=*/2);
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
  TestIterator iterator;
  const Status cause = errors::FailedPrecondition("not initialised");
  for (int i = 0; i < 3; ++i) {
    WaitingRun run(buffer.get());
    EXPECT_EQ(run.admitted(), i == 0);
    TakeResult take;
    buffer->TakeAsync(nullptr, take.Callback());
    EXPECT_EQ(run.Await(), OkStatus());
    EXPECT_FALSE(take.done());
    // It has read one of its iterators.
    EndStage(buffer.get(), &iterator, cause);
    EXPECT_FALSE(take.done());
    run.End();
    EXPECT_EQ(take.Wait(), cause);
  }
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 0);
  EXPECT_EQ(take.value(), 0);
  // After the first record, the same error is one of the data.
  EndStage(buffer.get(), &iterator, cause);
  EXPECT_EQ(TakeStatus(buffer.get()), cause);
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 2);
}

// After a change, no Close follows the end of the run.
TEST(TensorBufferRunsTest, AChangeBeforeTheCloseGivesBackWhatTheFailedRunHad) {
  auto buffer = MakeBuffer(1);
  TestIterator other, changed;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(other.Read(*run), 0);
  EXPECT_EQ(changed.Read(*run), 0);
  EXPECT_FALSE(run->End(errors::DataLoss("bad record")));
  changed.Change();
  EXPECT_EQ(RunStage(buffer.get(), {&other}), 0);
}

// It may be told to ignore the error.
TEST(TensorBufferRunsTest, AProducerThatGoesOnSkipsWhatFailed) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  FailRun(buffer.get(), &iterator, errors::DataLoss("ignored"));
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 1);
  EXPECT_EQ(iterator.Unused(), (Numbers{0, 1}));
  // The step that takes the next record uses both.
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(iterator.Unused(), Numbers());
}

// Another producer has found the end of the data meanwhile.
TEST(TensorBufferRunsTest, WhoGetsTheEndUsesWhatWasIgnoredBeforeIt) {
  const auto buffer = MakeBuffer(1);
  TestIterator iterator(0, 1);
  const auto ignored = BeginRun(buffer.get(), /*producer=*/1);
  EXPECT_EQ(iterator.Read(*ignored), 0);
  ignored->End(errors::DataLoss("ignored"));
  // The first producer goes on, and both find the end.
  for (const uint64_t producer : {1, 2}) {
    EXPECT_EQ(RunStage(buffer.get(), {&iterator}, producer), kEndOfData);
  }
  buffer->Close(OkStatus(), /*producer=*/2);
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
  buffer->Close(OkStatus(), /*producer=*/1);
  EXPECT_EQ(iterator.ReadBeside(), kEndOfData);
}

// As soon as the buffer is free, another run of the producer may read.
TEST(TensorBufferRunsTest, WhatGoesBackHasGoneBackBeforeTheBufferIsFree) {
  const auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto failed = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*failed), 0);
  failed->End(errors::DataLoss("error"));
  DueCallbacks due;
  due.GiveBack(failed->reads());
  // Before due.Run().
  EXPECT_EQ(iterator.Read(*BeginRun(buffer.get(), /*producer=*/2)), 0);
  due.Run();
}

TEST(TensorBufferRunsTest, WhatWaitedForAnEndDoesNotGoOnUnderALockOfTheEnd) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator(/*begin=*/0, /*end=*/0);
  mutex locked_by_the_runtime;
  Notification taken, admitted;
  const auto notify = [&](Notification* notification) {
    {
      mutex_lock l(locked_by_the_runtime);
    }
    notification->Notify();
  };
  auto active = BeginRun(buffer.get(), /*producer=*/2);
  EndStage(buffer.get(), &iterator);
  buffer->AwaitRun(1, nullptr, [&](const Status&) { notify(&admitted); });
  buffer->TakeAsync(
      nullptr, [&](const Status&, TensorBuffer::Taken) { notify(&taken); });
  {
    mutex_lock l(locked_by_the_runtime);
    active.reset();
  }
  taken.WaitForNotification();
  admitted.WaitForNotification();
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
  std::atomic<int64_t> oldest{0};
  std::atomic<int64_t> taken{0};
  std::atomic<bool> stop{false};
  {
    thread::ThreadPool pool(Env::Default(), "stage", kProducers + kConsumers);
    for (int p = 0; p < kProducers; ++p) {
      pool.Schedule([&, p] {
        for (int64_t i = 0; !stop; ++i) {
          const auto run = BeginRun(buffer.get(), /*producer=*/p);
          if (!run->AwaitAdmission(nullptr).ok()) return;
          const int64_t record = iterator.Read(*run);
          // Some runs fail, and some of the failed runs close the buffer.
          const bool fails = record < 0 || (i + p) % 7 == 0;
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
      while (taken == before) std::this_thread::yield();
      iterator.Change(/*begin=*/i * kPerVersion);
      oldest = i * kPerVersion;
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
