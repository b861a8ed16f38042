// SPDX-License-Identifier: Apache-2.0
//
// Tests what a TensorBuffer does with records that become stale, and that each
// element of an iterator is used once, in order, whatever happens to the stage.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>  // NOLINT
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// Lets a run read the next number of an iterator, and begin to put it.
struct WaitingRun {
  WaitingRun(TensorBuffer* buffer, TestIterator* iterator)
      : run(BeginRun(buffer)), number(iterator->Read(*run)) {
    buffer->PutAsync(MakeRecord(number), kNoTimeout, nullptr, put.Callback(),
                     run.get());
  }

  const std::unique_ptr<StagedRun> run;
  const int64_t number;
  PutResult put;
};

// A stage whose record of 0 is in the buffer. That of 1 waits for room, and a run
// computes that of 2.
struct BusyStage {
  BusyStage() {
    EXPECT_EQ(stored, 0);
    EXPECT_EQ(waits.number, 1);
    EXPECT_EQ(iterator.Read(*computes), 2);
  }

  const core::RefCountPtr<TensorBuffer> buffer = MakeBuffer(1);
  TestIterator iterator;
  const int64_t stored = RunStage(buffer.get(), {&iterator});
  WaitingRun waits{buffer.get(), &iterator};
  const std::unique_ptr<StagedRun> computes = BeginRun(buffer.get());
};

TEST(TensorBufferSourcesTest, AChangeDropsAndCountsWhatIsStale) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  RunStage(buffer.get(), {&iterator});
  RunStage(buffer.get(), {&iterator});
  WaitingRun waits(buffer.get(), &iterator);
  const auto computes = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*computes), 3);
  iterator.Change(/*begin=*/100);
  EXPECT_EQ(waits.put.Wait(), OkStatus());
  EXPECT_EQ(Put(computes.get(), 3), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 4);
  ExpectBalanced(*buffer);
  RunStage(buffer.get(), {&iterator});
  EXPECT_EQ(Take(buffer.get()), 100);
}

TEST(TensorBufferSourcesTest, WhatTheProgramReadsIsNotInARecord) {
  auto buffer = MakeBuffer(3);
  TestIterator iterator;
  for (int i = 0; i < 3; ++i) RunStage(buffer.get(), {&iterator});
  EXPECT_EQ(Take(buffer.get()), 0);
  EXPECT_EQ(iterator.ReadBeside(), 1);
  EXPECT_EQ(buffer->Size(), 0);
  RunStage(buffer.get(), {&iterator});
  EXPECT_EQ(Take(buffer.get()), 2);
}

TEST(TensorBufferSourcesTest, TheRecordsOfOtherSourcesStayInOrder) {
  auto buffer = MakeBuffer(4);
  TestIterator changes, stays(10);
  RunStage(buffer.get(), {&stays});
  RunStage(buffer.get(), {&changes});
  RunStage(buffer.get(), {&stays});
  EXPECT_EQ(Put(buffer.get(), 4), OkStatus());
  changes.Change();
  for (int64_t number : {10, 11, 4}) EXPECT_EQ(Take(buffer.get()), number);
}

TEST(TensorBufferSourcesTest, ARecordOfSeveralSourcesGoesWithEach) {
  auto buffer = MakeBuffer(4);
  TestIterator changes, other(100);
  RunStage(buffer.get(), {&changes, &other});
  // And with it what was read after it.
  RunStage(buffer.get(), {&other});
  changes.Change(/*begin=*/1000);
  EXPECT_EQ(buffer->Size(), 0);
  RunStage(buffer.get(), {&changes, &other});
  RunStage(buffer.get(), {&other});
  EXPECT_EQ(Take(buffer.get()), 1100);
  EXPECT_EQ(Take(buffer.get()), 101);
}

TEST(TensorBufferSourcesTest, AStepHasWhatItHasTaken) {
  auto buffer = MakeBuffer(4);
  TestIterator changes, other(100);
  RunStage(buffer.get(), {&changes, &other});
  EXPECT_EQ(Take(buffer.get()), 100);
  changes.Change();
  EXPECT_EQ(other.Unused(), Numbers());
  EXPECT_EQ(other.ReadBeside(), 101);
}

TEST(TensorBufferSourcesTest, ARecordOfALaterStageGoesWithWhatItWasMadeFrom) {
  auto first = MakeBuffer(4);
  auto second = MakeBuffer(4);
  TestIterator of_first, of_second(100);
  for (int i = 0; i < 3; ++i) RunStage(first.get(), {&of_first});
  for (int64_t i = 0; i < 2; ++i) {
    const auto run = BeginRun(second.get());
    EXPECT_EQ(Take(first.get(), *run), i);
    EXPECT_EQ(of_second.Read(*run), 100 + i);
    EXPECT_EQ(Put(run.get(), i), OkStatus());
  }
  EXPECT_EQ(Take(second.get()), 0);
  of_second.Change(/*begin=*/1000);
  // The first stage makes its records of later elements again, too.
  EXPECT_EQ(second->Size(), 0);
  EXPECT_EQ(first->Size(), 0);
  EXPECT_EQ(of_first.Unused(), (Numbers{1, 2}));
  RunStage(first.get(), {&of_first});
  const auto run = BeginRun(second.get());
  EXPECT_EQ(Take(first.get(), *run), 1);
  EXPECT_EQ(of_second.Read(*run), 1000);
}

TEST(TensorBufferSourcesTest, TheBytesOfDroppedRecordsNoLongerCount) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  TestIterator iterator;
  const Record record = {Tensor(DT_INT8, TensorShape({60}))};
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  EXPECT_EQ(Put(buffer.get(), record, kNoTimeout, run.get()), OkStatus());
  iterator.Change();
  EXPECT_EQ(Put(buffer.get(), MakeRecord(1)), OkStatus());
  EXPECT_EQ(Put(buffer.get(), record), OkStatus());
}

TEST(TensorBufferSourcesTest, ADroppedRecordMakesRoomForAWaitingOne) {
  auto buffer = MakeBuffer(1);
  TestIterator changes, stays(10);
  RunStage(buffer.get(), {&changes});
  WaitingRun waits(buffer.get(), &stays);
  EXPECT_FALSE(waits.put.done());
  changes.Change();
  EXPECT_EQ(waits.put.Wait(), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 10);
}

TEST(TensorBufferSourcesTest, ATakeWaitsThroughAChange) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  buffer->Resume();
  const auto old_run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*old_run), 0);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  iterator.Change(/*begin=*/100);
  EXPECT_EQ(Put(old_run.get(), 0), OkStatus());
  EXPECT_FALSE(take.done());
  RunStage(buffer.get(), {&iterator});
  EXPECT_EQ(take.value(), 100);
}

TEST(TensorBufferSourcesTest, AClosedBufferOpensIfItsEndGoesBack) {
  for (const bool changes : {false, true}) {
    auto buffer = MakeBuffer(2);
    TestIterator iterator(/*begin=*/0, /*end=*/1);
    RunStage(buffer.get(), {&iterator});
    EXPECT_EQ(RunStage(buffer.get(), {&iterator}), kEndOfData);
    buffer->Close(OkStatus());
    if (changes) {
      iterator.Change(/*begin=*/100);
    } else {
      EXPECT_EQ(iterator.ReadBeside(), 0);
    }
    EXPECT_EQ(RunStage(buffer.get(), {&iterator}), changes ? 100 : kEndOfData);
    if (changes) {
      EXPECT_EQ(Take(buffer.get()), 100);
    } else {
      buffer->Close(OkStatus());
      EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
    }
  }
}

TEST(TensorBufferSourcesTest, ANewBufferStaysIdle) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.idle_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  iterator.Change();
  EXPECT_TRUE(errors::IsFailedPrecondition(TakeStatus(buffer.get())));
}

TEST(TensorBufferSourcesTest, ACancelledBufferStaysCancelled) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), {&iterator});
  buffer->Close(OkStatus());
  buffer->Cancel();
  iterator.Change();
  EXPECT_TRUE(
      errors::IsCancelled(BeginRun(buffer.get())->AwaitAdmission(nullptr)));
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 1)));
}

TEST(TensorBufferSourcesTest, ATakeUsesWhatItsRecordWasMadeFrom) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  for (const bool waits : {false, true}) {
    TakeResult take;
    if (!waits) RunStage(buffer.get(), {&iterator});
    buffer->TakeAsync(nullptr, take.Callback());
    if (waits) RunStage(buffer.get(), {&iterator});
    ASSERT_NE(take.taken().reads, nullptr);
    EXPECT_TRUE(take.taken().reads->is_used());
    EXPECT_EQ(iterator.Unused(), Numbers());
  }
}

TEST(TensorBufferSourcesTest, ATakeOfARunUsesNothingYet) {
  auto buffer = MakeBuffer(1);
  auto later = MakeBuffer(1);
  TestIterator iterator;
  for (const bool waits : {false, true}) {
    const auto run = BeginRun(later.get());
    TakeResult take;
    if (!waits) RunStage(buffer.get(), {&iterator});
    buffer->TakeAsync(nullptr, take.Callback(), run.get());
    if (waits) RunStage(buffer.get(), {&iterator});
    ASSERT_NE(take.taken().reads, nullptr);
    EXPECT_FALSE(take.taken().reads->is_used());
    EXPECT_EQ(iterator.Unused(), Numbers{0});
    GiveBack(take.taken().reads);
  }
}

// A roll-back tells the stages after it, and a take may come between.
TEST(TensorBufferSourcesTest, NoTakeGetsAStaleRecordWhoseStageHasNotHeard) {
  auto buffer = MakeBuffer(2);
  auto later = MakeBuffer(1);
  TestIterator iterator;
  for (const bool is_step : {true, false}) {
    RunStage(buffer.get(), {&iterator});
    RunStage(buffer.get(), {&iterator});
    RollBack roll_back;
    roll_back.GiveBackAll(iterator.source());
    EXPECT_EQ(buffer->Size(), 2);
    TakeResult take;
    const auto run = BeginRun(later.get());
    buffer->TakeAsync(nullptr, take.Callback(), is_step ? nullptr : run.get());
    EXPECT_FALSE(take.done());
    EXPECT_EQ(buffer->Size(), 0);
    EXPECT_EQ(RunStage(buffer.get(), {&iterator}), is_step ? 0 : 1);
    EXPECT_EQ(take.value(), is_step ? 0 : 1);
    GiveBack(take.taken().reads);
    ExpectBalanced(*buffer);
  }
}

// The put that waits is the next one, and there is room for it.
TEST(TensorBufferSourcesTest, ATakeThatSkipsStaleRecordsGetsTheWaitingPut) {
  auto buffer = MakeBuffer(1);
  TestIterator changes, stays(10);
  RunStage(buffer.get(), {&changes});
  WaitingRun waits(buffer.get(), &stays);
  RollBack roll_back;
  roll_back.GiveBackAll(changes.source());
  EXPECT_EQ(Take(buffer.get()), 10);
  EXPECT_EQ(waits.put.Wait(), OkStatus());
  ExpectBalanced(*buffer);
}

TEST(TensorBufferSourcesTest, ARecordThatIsStaleWhenItIsPutIsGivenToNoTake) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  buffer->Resume();
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  GiveBack(run->reads());
  EXPECT_EQ(Put(run.get(), 0), OkStatus());
  EXPECT_FALSE(take.done());
  EXPECT_EQ(buffer->GetStats().discarded(), 1);
  RunStage(buffer.get(), {&iterator});
  EXPECT_EQ(take.value(), 0);
}

TEST(TensorBufferSourcesTest, DiscardLetsAllRecordsBeMadeAgain) {
  BusyStage stage;
  TensorBuffer* const buffer = stage.buffer.get();
  EXPECT_EQ(buffer->Discard(), 2);
  EXPECT_EQ(stage.waits.put.Wait(), OkStatus());
  EXPECT_TRUE(stage.computes->IsStale());
  EXPECT_EQ(Put(stage.computes.get(), 2), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 3);
  ExpectBalanced(*buffer);
  for (int64_t i = 0; i < 3; ++i) {
    RunStage(buffer, {&stage.iterator});
    EXPECT_EQ(Take(buffer), i);
  }
}

TEST(TensorBufferSourcesTest, DiscardDropsWhatWasMadeFromNoElement) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  const auto run = BeginRun(buffer.get());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback(),
                   run.get());
  EXPECT_EQ(buffer->Discard(), 2);
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  ExpectBalanced(*buffer);
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 3), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 3);
}

TEST(TensorBufferSourcesTest, ARunThatIsDiscardedAndFailsIsRepeated) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  buffer->Discard();
  EXPECT_TRUE(run->End(errors::DataLoss("with the old state")));
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 0);
}

TEST(TensorBufferSourcesTest, DiscardTriesWhatHadEndedTheStageAgain) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 0);
  EXPECT_FALSE(run->End(errors::DataLoss("with the old state")));
  buffer->Close(errors::DataLoss("with the old state"));
  buffer->Discard();
  EXPECT_EQ(RunStage(buffer.get(), {&iterator}), 0);
  EXPECT_EQ(Take(buffer.get()), 0);
}

TEST(TensorBufferSourcesTest, GivingBackRecordsLeavesTheRuns) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator, other(100);
  RunStage(buffer.get(), {&iterator});
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(other.Read(*run), 100);
  EXPECT_EQ(buffer->GiveBackRecords(), 1);
  EXPECT_FALSE(run->IsStale());
  EXPECT_EQ(Put(run.get(), 100), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 100);
  EXPECT_EQ(iterator.ReadBeside(), 0);
}

// Two runs may end in another order than that in which they have read.
TEST(TensorBufferSourcesTest, ElementsComeBackInTheOrderOfTheReads) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  const auto first = BeginRun(buffer.get(), /*producer=*/1);
  const auto second = BeginRun(buffer.get(), /*producer=*/2);
  EXPECT_EQ(iterator.Read(*first), 0);
  EXPECT_EQ(iterator.Read(*second), 1);
  EXPECT_EQ(Put(second.get(), 1), OkStatus());
  EXPECT_EQ(Put(first.get(), 0), OkStatus());
  buffer->GiveBackRecords();
  EXPECT_EQ(iterator.ReadBeside(), 0);
  EXPECT_EQ(iterator.ReadBeside(), 1);
}

TEST(TensorBufferSourcesTest, AStoppedStageKeepsItsRecordsAndGivesBackTheRest) {
  BusyStage stage;
  TensorBuffer* const buffer = stage.buffer.get();
  buffer->Cancel();
  EXPECT_EQ(stage.waits.put.Wait(), OkStatus());
  EXPECT_FALSE(stage.computes->End(errors::Cancelled("stopped")));
  EXPECT_TRUE(stage.computes->IsStale());
  EXPECT_EQ(Take(buffer), 0);
  EXPECT_EQ(Take(buffer), 1);
  buffer->Resume();
  RunStage(buffer, {&stage.iterator});
  EXPECT_EQ(Take(buffer), 2);
}

TEST(TensorBufferSourcesTest, ABufferThatGoesGivesBackItsRecords) {
  TestIterator iterator;
  PutResult waiting;
  {
    auto buffer = MakeBuffer(1);
    RunStage(buffer.get(), {&iterator});
    auto run = BeginRun(buffer.get());
    EXPECT_EQ(iterator.Read(*run), 1);
    buffer->PutAsync(MakeRecord(1), kNoTimeout, nullptr, waiting.Callback(),
                     run.get());
    // The run's reference would keep the buffer.
    run.reset();
  }
  EXPECT_TRUE(errors::IsCancelled(waiting.Wait()));
  EXPECT_EQ(iterator.ReadBeside(), 0);
  EXPECT_EQ(iterator.ReadBeside(), 1);
}

TEST(TensorBufferSourcesTest, WhatABufferDropsForATimeoutIsUsed) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), {&iterator});
  const auto run = BeginRun(buffer.get());
  EXPECT_EQ(iterator.Read(*run), 1);
  EXPECT_EQ(Put(buffer.get(), MakeRecord(1), kShortMillis, run.get()),
            OkStatus());
  EXPECT_EQ(buffer->GetStats().dropped(), 1);
  EXPECT_EQ(iterator.Unused(), Numbers{0});
  EXPECT_EQ(iterator.ReadBeside(), 0);
  EXPECT_EQ(iterator.ReadBeside(), 2);
}

TEST(TensorBufferSourcesTest, ElementsCountAsBytesUnlessTheRecordHasThem) {
  for (const bool shares : {false, true}) {
    auto buffer = MakeBuffer(/*capacity=*/8, /*capacity_bytes=*/16);
    TestIterator iterator;
    for (int64_t i : {0, 1}) {
      const auto run = BeginRun(buffer.get());
      EXPECT_EQ(iterator.Read(*run), i);
      Record record = MakeRecord(i);
      if (shares) {
        run->reads()->ForEach([&record](const HeldEntry& entry) {
          record = entry.outcome->element;
        });
      }
      PutResult put;
      buffer->PutAsync(std::move(record), kNoTimeout, nullptr, put.Callback(),
                       run.get());
      EXPECT_EQ(put.done(), shares || i == 0);
    }
    buffer->Cancel();
  }
}

// Steps, reads of the program, discards and a stop race with the producer of a
// stage: the numbers come once, in order.
TEST(TensorBufferSourcesTest, ElementsComeOnceInOrderWhateverTheProgramDoes) {
  constexpr int kActions = 2000;
  auto buffer = MakeBuffer(3);
  TestIterator iterator;
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    while (!stop) {
      const auto run = BeginRun(buffer.get());
      const Status admitted = run->AwaitAdmission(nullptr);
      if (!admitted.ok()) {
        std::this_thread::yield();
        continue;
      }
      const int64_t number = iterator.Read(*run);
      if (number == kStaleRead) {
        EXPECT_TRUE(run->End(run->StaleStatus()));
      } else {
        Put(run.get(), number).IgnoreError();
      }
    }
  });
  for (int64_t i = 0; i < kActions; ++i) {
    switch (i % 11) {
      case 3:
        ASSERT_EQ(iterator.ReadBeside(), i);
        continue;
      case 5:
        buffer->Discard();
        break;
      case 8:
        buffer->Cancel();
        buffer->Resume();
        break;
      default:
        break;
    }
    ASSERT_EQ(Take(buffer.get()), i);
  }
  stop = true;
  buffer->Cancel();
  producer.join();
  ExpectBalanced(*buffer);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
