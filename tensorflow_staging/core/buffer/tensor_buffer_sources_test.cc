// SPDX-License-Identifier: Apache-2.0
//
// Tests how a TensorBuffer follows the changes of its sources: what it drops,
// how it holds its runs, and how it gives and gets the records of checkpoints.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

using Numbers = std::vector<int64_t>;

Numbers NumbersOf(const TensorBuffer& buffer) {
  Numbers numbers;
  for (const SavedRecord& record : buffer.Records()) {
    numbers.push_back(record.tensors[0].scalar<int64_t>()());
  }
  return numbers;
}

std::vector<SavedRecord> Saved(const Numbers& numbers) {
  std::vector<SavedRecord> records;
  for (int64_t number : numbers) {
    records.push_back({{"record:0"}, MakeRecord(number)});
  }
  return records;
}

// Begins a run that reads `iterator`.
std::unique_ptr<StagedRun> BeginRun(TensorBuffer* buffer,
                                    const TestIterator& iterator) {
  auto run = BeginRun(buffer);
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  return run;
}

// A run reads `iterator` and puts a record.
void RunStage(TensorBuffer* buffer, const TestIterator& iterator,
              int64_t number) {
  EXPECT_EQ(Put(BeginRun(buffer, iterator).get(), number), OkStatus());
}

// The step container of a session's run.
struct Container {
  char unused = 0;
};

TakeResult TakeIn(const Container& container, TensorBuffer* buffer) {
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback(), &container);
  return take;
}

TEST(TensorBufferSourcesTest, AChangeDropsAndCountsWhatIsStale) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 1);
  RunStage(buffer.get(), iterator, 2);
  const auto waits = BeginRun(buffer.get(), iterator);
  const auto computes = BeginRun(buffer.get(), iterator);
  PutResult waiting;
  buffer->PutAsync(MakeRecord(3), kNoTimeout, nullptr, waiting.Callback(),
                   waits.get());
  iterator.Change();
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(Put(computes.get(), 4), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 4);
  ExpectBalanced(*buffer);
  RunStage(buffer.get(), iterator, 5);
  EXPECT_EQ(Take(buffer.get()), 5);
}

TEST(TensorBufferSourcesTest, TheRecordsOfOtherSourcesStayInOrder) {
  auto buffer = MakeBuffer(4);
  TestIterator changes, stays;
  RunStage(buffer.get(), stays, 1);
  RunStage(buffer.get(), changes, 2);
  RunStage(buffer.get(), stays, 3);
  EXPECT_EQ(Put(buffer.get(), 4), OkStatus());
  changes.Change();
  EXPECT_EQ(NumbersOf(*buffer), (Numbers{1, 3, 4}));
}

TEST(TensorBufferSourcesTest, ARecordOfSeveralSourcesGoesWithEach) {
  auto buffer = MakeBuffer(1);
  TestIterator one, other;
  const auto run = BeginRun(buffer.get(), one);
  EXPECT_EQ(run->AddReads(other.reads()), OkStatus());
  EXPECT_EQ(Put(run.get(), 1), OkStatus());
  other.Change();
  EXPECT_EQ(buffer->Size(), 0);
}

TEST(TensorBufferSourcesTest, OtherSourcesGetBackWhatDroppedRecordsHad) {
  auto buffer = MakeBuffer(1);
  TestIterator one, other;
  std::vector<std::unique_ptr<StagedRun>> runs;
  std::vector<PutResult> puts(2);
  for (int64_t i = 0; i < 2; ++i) {
    runs.push_back(BeginRun(buffer.get(), one));
    EXPECT_EQ(runs[i]->AddReads(other.reads()), OkStatus());
    EXPECT_TRUE(runs[i]->keeps_elements());
    for (const TestIterator* iterator : {&one, &other}) {
      runs[i]->Keep(
          {*iterator->reads().begin(), MakeRecord(i), Source::NextOrder()});
    }
    // The second one waits for room.
    buffer->PutAsync(MakeRecord(i), kNoTimeout, nullptr, puts[i].Callback(),
                     runs[i].get());
  }
  one.Change();
  EXPECT_EQ(other.TakeGivenBack(), (Numbers{0, 1}));
  EXPECT_EQ(one.TakeGivenBack(), Numbers());
  // A step has what has been taken.
  const auto run = BeginRun(buffer.get(), one);
  EXPECT_EQ(run->AddReads(other.reads()), OkStatus());
  run->Keep({*other.reads().begin(), MakeRecord(2), Source::NextOrder()});
  EXPECT_EQ(Put(run.get(), 2), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 2);
  one.Change();
  EXPECT_EQ(other.TakeGivenBack(), Numbers());
}

TEST(TensorBufferSourcesTest, WhatCameAfterADroppedRecordGoesWithIt) {
  auto buffer = MakeBuffer(4);
  TestIterator changes, stays;
  const auto read = [](StagedRun* run, const TestIterator& iterator,
                       int64_t element) {
    EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
    run->Keep(
        {*iterator.reads().begin(), MakeRecord(element), Source::NextOrder()});
  };
  const auto put = [&](int64_t element, bool reads_both) {
    const auto run = BeginRun(buffer.get(), stays);
    read(run.get(), stays, element);
    if (reads_both) read(run.get(), changes, element);
    EXPECT_EQ(Put(run.get(), element), OkStatus());
  };
  put(1, /*reads_both=*/true);
  EXPECT_EQ(Take(buffer.get()), 1);
  put(2, /*reads_both=*/false);
  put(3, /*reads_both=*/true);
  put(4, /*reads_both=*/false);
  // This one has read the element after that.
  CancellationManager manager;
  const std::shared_ptr<StagedRun> run = BeginRun(buffer.get());
  const ScopedStagedRun scope(&manager, run);
  read(run.get(), stays, 5);
  changes.Change();
  EXPECT_EQ(NumbersOf(*buffer), Numbers{2});
  EXPECT_TRUE(run->IsStale());
  EXPECT_TRUE(run->End(errors::Aborted("repeated")));
  EXPECT_EQ(stays.TakeGivenBack(), (Numbers{3, 4, 5}));
}

TEST(TensorBufferSourcesTest, ADroppedRecordPutsBackThoseOfOtherStages) {
  auto first = MakeBuffer(4);
  auto second = MakeBuffer(4);
  TestIterator of_first, of_second;
  std::vector<std::unique_ptr<StagedRun>> runs;
  for (int64_t i = 0; i < 3; ++i) {
    RunStage(first.get(), of_first, i);
    TakeResult take;
    first->TakeAsync(nullptr, take.Callback());
    EXPECT_EQ(take.Wait(), OkStatus());
    runs.push_back(BeginRun(second.get(), of_second));
    EXPECT_EQ(runs[i]->AddReads(take.taken().reads), OkStatus());
    runs[i]->KeepTaken(
        [&first, taken = take.taken()] { first->PutBack(taken); });
  }
  RunStage(first.get(), of_first, 3);
  EXPECT_EQ(Put(runs[1].get(), 1), OkStatus());
  EXPECT_EQ(Put(runs[0].get(), 0), OkStatus());
  of_second.Change();
  // Which comes last.
  EXPECT_TRUE(runs[2]->End(errors::Aborted("repeated")));
  EXPECT_EQ(NumbersOf(*first), (Numbers{0, 1, 2, 3}));
}

TEST(TensorBufferSourcesTest, TheBytesOfDroppedRecordsNoLongerCount) {
  auto buffer = MakeBuffer(/*capacity=*/4, /*capacity_bytes=*/100);
  TestIterator iterator;
  const Record record = {Tensor(DT_INT8, TensorShape({60}))};
  EXPECT_EQ(Put(buffer.get(), record, kNoTimeout,
                BeginRun(buffer.get(), iterator).get()),
            OkStatus());
  iterator.Change();
  EXPECT_EQ(Put(buffer.get(), MakeRecord(1)), OkStatus());
  EXPECT_EQ(Put(buffer.get(), record), OkStatus());
}

TEST(TensorBufferSourcesTest, ADroppedRecordMakesRoomForAWaitingOne) {
  auto buffer = MakeBuffer(1);
  TestIterator changes, stays;
  RunStage(buffer.get(), changes, 1);
  const auto run = BeginRun(buffer.get(), stays);
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback(),
                   run.get());
  EXPECT_FALSE(waiting.done());
  changes.Change();
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{2});
}

TEST(TensorBufferSourcesTest, ATakeWaitsThroughAChange) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  buffer->Resume();
  const auto old_run = BeginRun(buffer.get(), iterator);
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  iterator.Change();
  EXPECT_EQ(Put(old_run.get(), 1), OkStatus());
  EXPECT_FALSE(take.done());
  RunStage(buffer.get(), iterator, 2);
  EXPECT_EQ(take.value(), 2);
}

TEST(TensorBufferSourcesTest, AClosedBufferOpens) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 1);
  buffer->Close(errors::DataLoss("of the old data"));
  iterator.Change();
  RunStage(buffer.get(), iterator, 2);
  EXPECT_EQ(Take(buffer.get()), 2);
  buffer->Close(OkStatus());
  EXPECT_TRUE(errors::IsOutOfRange(TakeStatus(buffer.get())));
}

TEST(TensorBufferSourcesTest, ANewBufferStaysIdle) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.idle_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  TestIterator iterator;
  BeginRun(buffer.get(), iterator);
  iterator.Change();
  EXPECT_TRUE(errors::IsFailedPrecondition(TakeStatus(buffer.get())));
}

TEST(TensorBufferSourcesTest, ACancelledBufferStaysCancelled) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 1);
  buffer->Close(OkStatus());
  buffer->Cancel();
  iterator.Change();
  EXPECT_TRUE(errors::IsCancelled(TakeStatus(buffer.get())));
  EXPECT_TRUE(
      errors::IsCancelled(BeginRun(buffer.get())->AwaitAdmission(nullptr)));
  EXPECT_TRUE(errors::IsCancelled(Put(buffer.get(), 1)));
}

TEST(TensorBufferSourcesTest, ATakeReportsWhatItsRecordWasMadeFrom) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  for (const bool waits : {false, true}) {
    TakeResult take;
    if (!waits) RunStage(buffer.get(), iterator, 1);
    buffer->TakeAsync(nullptr, take.Callback());
    if (waits) RunStage(buffer.get(), iterator, 1);
    EXPECT_EQ(take.value(), 1);
    ASSERT_FALSE(take.taken().reads.empty());
    EXPECT_EQ(take.taken().reads.begin()->first, iterator.source());
    EXPECT_FALSE(take.taken().is_restored);
  }
  // And what the end was found in.
  BeginRun(buffer.get(), iterator)->End(errors::OutOfRange("end"));
  for (const bool waits : {true, false}) {
    TakeResult take;
    if (!waits) buffer->Close(OkStatus());
    buffer->TakeAsync(nullptr, take.Callback());
    if (waits) buffer->Close(OkStatus());
    EXPECT_TRUE(errors::IsOutOfRange(take.Wait()));
    EXPECT_FALSE(take.taken().reads.empty());
  }
}

TEST(TensorBufferSourcesTest, DiscardDropsAllRecordsAndThoseOfTheActiveRuns) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  const auto waits = BeginRun(buffer.get());
  const auto computes = BeginRun(buffer.get());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback(),
                   waits.get());
  EXPECT_EQ(buffer->Discard(), 2);
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(Put(computes.get(), 3), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(buffer->GetStats().discarded(), 3);
  ExpectBalanced(*buffer);
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 4), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 4);
}

TEST(TensorBufferSourcesTest, ARunThatIsDiscardedAndFailsIsToBeRepeated) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  const auto run = BeginRun(buffer.get(), iterator);
  run->Keep({*iterator.reads().begin(), MakeRecord(1), Source::NextOrder()});
  run->KeepTaken([] { FAIL(); });
  buffer->Discard();
  EXPECT_TRUE(run->End(errors::OutOfRange("end")));
  EXPECT_EQ(iterator.TakeGivenBack(), Numbers());
}

TEST(TensorBufferSourcesTest, DiscardLeavesARunThatHasReadNothingYet) {
  auto buffer = MakeBuffer(1);
  const Container container;
  std::invoke(buffer->BeginHold(&container));
  const auto run = BeginRun(buffer.get());
  PutResult admitted;
  run->AwaitAdmission(nullptr, admitted.Callback());
  buffer->Discard();
  buffer->EndHold(&container);
  EXPECT_EQ(admitted.Wait(), OkStatus());
  EXPECT_EQ(Put(run.get(), 1), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{1});
}

TEST(TensorBufferSourcesTest, NoRunBeginsDuringAHold) {
  auto buffer = MakeBuffer(1);
  const Container first, second;
  const auto old_run = BeginRun(buffer.get());
  std::invoke(buffer->BeginHold(&first));
  std::invoke(buffer->BeginHold(&second));
  const auto run = BeginRun(buffer.get());
  PutResult admitted;
  run->AwaitAdmission(nullptr, admitted.Callback());
  // Puts and takes go on.
  EXPECT_EQ(Put(old_run.get(), 1), OkStatus());
  EXPECT_EQ(TakeIn({}, buffer.get()).value(), 1);
  buffer->EndHold(&first);
  EXPECT_FALSE(admitted.done());
  buffer->EndHold(&second);
  EXPECT_EQ(admitted.Wait(), OkStatus());
}

TEST(TensorBufferSourcesTest, ATakeInTheRunThatHoldsTheStageFails) {
  auto buffer = MakeBuffer(2);
  buffer->Resume();
  const Container holder, other;
  TakeResult early = TakeIn(holder, buffer.get());
  TakeResult of_other = TakeIn(other, buffer.get());
  std::invoke(buffer->BeginHold(&holder));
  EXPECT_TRUE(errors::IsInvalidArgument(early.Wait())) << early.Wait();
  TakeResult late = TakeIn(holder, buffer.get());
  EXPECT_TRUE(errors::IsInvalidArgument(late.Wait())) << late.Wait();
  EXPECT_TRUE(absl::StrContains(late.Wait().message(), "in a run of its own"))
      << late.Wait();
  EXPECT_FALSE(of_other.done());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(of_other.value(), 1);
  // It need not wait for a record that is there.
  EXPECT_EQ(Put(buffer.get(), 2), OkStatus());
  EXPECT_EQ(TakeIn(holder, buffer.get()).value(), 2);
  buffer->EndHold(&holder);
  TakeResult after = TakeIn(holder, buffer.get());
  EXPECT_FALSE(after.done());
  EXPECT_EQ(Put(buffer.get(), 3), OkStatus());
  EXPECT_EQ(after.value(), 3);
}

TEST(TensorBufferSourcesTest, ATakeWithoutAStepContainerHoldsNothing) {
  auto buffer = MakeBuffer(1);
  buffer->Resume();
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  buffer->BeginHold(nullptr)();
  EXPECT_FALSE(take.done());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  EXPECT_EQ(take.value(), 1);
}

// A pause; the constructor begins it.
class Pause {
 public:
  explicit Pause(TensorBuffer* buffer,
                 CancellationManager* cancellation = nullptr)
      : buffer_(buffer) {
    buffer->Pause(&container_, cancellation, begun_.Callback());
  }

  bool begun() const { return begun_.done(); }
  Status Await() { return begun_.Wait(); }
  void End() { buffer_->EndHold(&container_); }

 private:
  TensorBuffer* const buffer_;
  const Container container_;
  PutResult begun_;
};

TEST(TensorBufferSourcesTest, APauseWaitsForTheActiveRunsAndHoldsTheNext) {
  auto buffer = MakeBuffer(2);
  auto active = BeginRun(buffer.get());
  Pause pause(buffer.get());
  EXPECT_FALSE(pause.begun());
  const auto next = BeginRun(buffer.get());
  PutResult admitted;
  next->AwaitAdmission(nullptr, admitted.Callback());
  EXPECT_EQ(Put(active.get(), 1), OkStatus());
  EXPECT_FALSE(pause.begun());
  active.reset();
  EXPECT_EQ(pause.Await(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{1});
  EXPECT_FALSE(admitted.done());
  pause.End();
  EXPECT_EQ(admitted.Wait(), OkStatus());
}

TEST(TensorBufferSourcesTest, ARunThatWaitsForRoomIsQuietAndItsRecordShown) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 1), OkStatus());
  const auto run = BeginRun(buffer.get());
  Pause pause(buffer.get());
  EXPECT_FALSE(pause.begun());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback(),
                   run.get());
  EXPECT_EQ(pause.Await(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), (Numbers{1, 2}));
  // The step goes on meanwhile.
  EXPECT_EQ(Take(buffer.get()), 1);
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), Numbers{2});
  pause.End();
}

TEST(TensorBufferSourcesTest, APutOfNoRunDoesNotMakeARunQuiet) {
  auto buffer = MakeBuffer(1);
  auto run = BeginRun(buffer.get());
  EXPECT_EQ(Put(buffer.get(), 1), OkStatus());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback());
  Pause pause(buffer.get());
  EXPECT_FALSE(pause.begun());
  run.reset();
  EXPECT_EQ(pause.Await(), OkStatus());
  pause.End();
}

TEST(TensorBufferSourcesTest, OverlappingPausesEndWithTheLast) {
  auto buffer = MakeBuffer(1);
  Pause first(buffer.get()), second(buffer.get());
  const auto run = BeginRun(buffer.get());
  PutResult admitted;
  run->AwaitAdmission(nullptr, admitted.Callback());
  first.End();
  EXPECT_FALSE(admitted.done());
  second.End();
  EXPECT_EQ(admitted.Wait(), OkStatus());
}

TEST(TensorBufferSourcesTest, APauseEndsWhenItsRunIsCancelled) {
  auto buffer = MakeBuffer(1);
  const auto active = BeginRun(buffer.get());
  CancellationManager cancellation;
  Pause pause(buffer.get(), &cancellation);
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(pause.Await()));
  Pause too_late(buffer.get(), &cancellation);
  EXPECT_TRUE(errors::IsCancelled(too_late.Await()));
  // Nothing is paused any more.
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferSourcesTest, APauseThatTakesTooLongSaysWhatItWaitsFor) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.pause_timeout_millis = kShortMillis;
  core::RefCountPtr<TensorBuffer> buffer(new TensorBuffer(options));
  const auto slow = BeginRun(buffer.get());
  const Status status = Pause(buffer.get()).Await();
  EXPECT_TRUE(errors::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "1 of its runs")) << status;
  EXPECT_TRUE(BeginRun(buffer.get())->is_admitted());
}

TEST(TensorBufferSourcesTest, DestructionCancelsAWaitingPause) {
  PutResult pause;
  {
    auto buffer = MakeBuffer(1);
    ASSERT_EQ(buffer->BeginRun(1), RunBegin::kAdmitted);
    buffer->Pause(nullptr, nullptr, pause.Callback());
  }
  EXPECT_TRUE(errors::IsCancelled(pause.Wait()));
}

TEST(TensorBufferSourcesTest, TheRecordsOfAStoppedStageCanBeSaved) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(Put(BeginRun(buffer.get()).get(), 1), OkStatus());
  auto waits = BeginRun(buffer.get());
  auto computes = BeginRun(buffer.get());
  PutResult waiting;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waiting.Callback(),
                   waits.get());
  buffer->Cancel();
  EXPECT_EQ(waiting.Wait(), OkStatus());
  EXPECT_EQ(Put(computes.get(), 3), OkStatus());
  waits.reset();
  computes.reset();
  Pause pause(buffer.get());
  EXPECT_EQ(pause.Await(), OkStatus());
  EXPECT_EQ(NumbersOf(*buffer), (Numbers{1, 2, 3}));
  pause.End();
  ExpectBalanced(*buffer);
}

TEST(TensorBufferSourcesTest, RestoredRecordsComeFirstAndReplaceTheOld) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 1);
  iterator.Change(/*step=*/1, {{"prefetch", Saved({5, 6})}});
  EXPECT_EQ(buffer->Size(), 2);
  const auto run = BeginRun(buffer.get(), iterator);
  PutResult waiting;
  buffer->PutAsync(MakeRecord(7), kNoTimeout, nullptr, waiting.Callback(),
                   run.get());
  for (const int64_t number : {5, 6, 7}) {
    TakeResult take;
    buffer->TakeAsync(nullptr, take.Callback());
    EXPECT_EQ(take.value(), number);
    EXPECT_EQ(take.taken().is_restored, number < 7);
  }
  EXPECT_EQ(waiting.Wait(), OkStatus());
  ExpectBalanced(*buffer);
}

TEST(TensorBufferSourcesTest, AWaitingTakeGetsTheFirstRestoredRecord) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  BeginRun(buffer.get(), iterator);
  buffer->Resume();
  TakeResult take;
  buffer->TakeAsync(nullptr, take.Callback());
  iterator.Change(/*step=*/1, {{"prefetch", Saved({5, 6})}});
  EXPECT_EQ(take.value(), 5);
  EXPECT_EQ(NumbersOf(*buffer), Numbers{6});
  ExpectBalanced(*buffer);
}

// The position of one iterator carries the records of a stage that reads two.
TEST(TensorBufferSourcesTest, OneRunMayRestoreSeveralSourcesOfAStage) {
  auto buffer = MakeBuffer(1);
  TestIterator one, other;
  EXPECT_EQ(BeginRun(buffer.get(), one)->AddReads(other.reads()), OkStatus());
  one.Change(/*step=*/1, {{"prefetch", Saved({5})}});
  other.Change(/*step=*/1);
  EXPECT_EQ(NumbersOf(*buffer), Numbers{5});
  other.Change(/*step=*/2);
  EXPECT_EQ(buffer->Size(), 0);
}

TEST(TensorBufferSourcesTest, RestoredRecordsGoWithTheirOwnSource) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  BeginRun(buffer.get(), iterator);
  iterator.Change(/*step=*/1, {{"prefetch", Saved({5})}});
  iterator.Change(/*step=*/1);
  EXPECT_EQ(buffer->Size(), 0);
}

// Whoever saves them again copies the others from where the stage keeps them.
TEST(TensorBufferSourcesTest, RestoredRecordsAreInHostMemory) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  RunStage(buffer.get(), iterator, 0);
  iterator.Change(/*step=*/1, {{buffer->name(), Saved({1})}});
  const auto run = BeginRun(buffer.get(), iterator);
  PutResult waits;
  buffer->PutAsync(MakeRecord(2), kNoTimeout, nullptr, waits.Callback(),
                   run.get());
  const std::vector<SavedRecord> records = buffer->Records();
  ASSERT_EQ(records.size(), 2);
  EXPECT_TRUE(records[0].is_on_host);
  EXPECT_FALSE(records[1].is_on_host);
}

TEST(TensorBufferSourcesTest, RestoredRecordsMustFitTheStage) {
  auto buffer = MakeBuffer(1);
  EXPECT_EQ(buffer->Check(Saved({1})), OkStatus());
  RecordLayout layout;
  layout.device = "a device";
  layout.on_device = {0};
  layout.tensor_names = {"image:0", "label:0"};
  EXPECT_EQ(buffer->KeepRecordsOn("a place", layout), "a place");
  EXPECT_EQ(buffer->KeepRecordsOn("another", {}), "a place");
  EXPECT_EQ(buffer->Layout().device, "a device");
  EXPECT_EQ(buffer->Layout().on_device, std::vector<int>{0});
  const Status status = buffer->Check(Saved({1}));
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      "They hold record:0; the stage carries image:0, label:0."))
      << status;
  std::vector<SavedRecord> fitting = Saved({1});
  fitting[0].tensor_names = layout.tensor_names;
  EXPECT_EQ(buffer->Check(fitting), OkStatus());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
