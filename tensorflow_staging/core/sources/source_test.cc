// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/run_holds.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

core::RefCountPtr<TensorBuffer> MakeStage(const std::string& name) {
  TensorBuffer::Options options;
  options.name = name;
  return core::RefCountPtr<TensorBuffer>(new TensorBuffer(options));
}

std::vector<SavedRecord> Saved(int64_t number) {
  return {{{"record:0"}, MakeRecord(number)}};
}

// Makes `stage` a reader. Returns the run that saves the source, if the stage
// must know of it.
core::RefCountPtr<RunHolds> AddReader(Source* source, TensorBuffer* stage) {
  core::RefCountPtr<RunHolds> saving;
  source->AddReader(stage, &saving);
  return saving;
}

// What `stage` gets that begins to read.
std::vector<Source::Waiting> TakeWaiting(Source* source, TensorBuffer* stage) {
  std::vector<Source::Waiting> waiting;
  core::RefCountPtr<RunHolds> saving;
  EXPECT_EQ(source->TakeWaiting(stage, &waiting, &saving), OkStatus());
  return waiting;
}

int64_t NumberIn(const Source::Waiting& waiting) {
  EXPECT_EQ(waiting.records.size(), 1);
  return waiting.records[0].tensors[0].scalar<int64_t>()();
}

TEST(SourceTest, AnIteratorHasOneSourceUntilItIsForgotten) {
  const int iterator = 0;
  EXPECT_EQ(Source::Find(&iterator), nullptr);
  const std::shared_ptr<Source> source = Source::Of(&iterator);
  EXPECT_EQ(Source::Of(&iterator), source);
  EXPECT_EQ(Source::Find(&iterator), source);
  Source::Forget(&iterator);
  Source::Forget(&iterator);
  EXPECT_EQ(Source::Find(&iterator), nullptr);
  EXPECT_NE(Source::Of(&iterator), source);
  Source::Forget(&iterator);
}

TEST(SourceTest, AChangeBeginsTheNextVersion) {
  TestIterator iterator;
  ReadSet reads = iterator.reads();
  EXPECT_FALSE(reads.IsStale());
  const int64_t before = Source::Now();
  iterator.source()->Change({});
  EXPECT_GT(iterator.source()->changed_at(), before);
  EXPECT_EQ(iterator.source()->changed_at(), Source::Now());
  EXPECT_TRUE(reads.IsStale());
  EXPECT_FALSE(iterator.reads().IsStale());
}

TEST(SourceTest, AReadSetHasEachReadOnce) {
  TestIterator iterator, other;
  ReadSet reads;
  EXPECT_TRUE(reads.empty());
  EXPECT_FALSE(reads.IsStale());
  reads.Add(iterator.reads());
  reads.Add(iterator.reads());
  EXPECT_EQ(std::distance(reads.begin(), reads.end()), 1);
  reads.Add(other.reads());
  EXPECT_EQ(std::distance(reads.begin(), reads.end()), 2);
  other.source()->Change({});
  EXPECT_TRUE(reads.IsStale());
}

TEST(SourceTest, ReadersAreInTheOrderInWhichTheyBecameSo) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const auto first = MakeStage("first");
  auto gone = MakeStage("gone");
  const auto last = MakeStage("last");
  for (TensorBuffer* stage :
       {first.get(), gone.get(), last.get(), first.get()}) {
    EXPECT_EQ(AddReader(&source, stage), nullptr);
  }
  gone.reset();
  const auto readers = source.Readers();
  ASSERT_EQ(readers.size(), 2);
  EXPECT_EQ(readers[0].get(), first.get());
  EXPECT_EQ(readers[1].get(), last.get());
  EXPECT_EQ(source.Change({}).size(), 2);
}

TEST(SourceTest, KnowsTheRunThatChangesItUntilThatEnds) {
  TestIterator iterator;
  Source& source = *iterator.source();
  EXPECT_EQ(source.changing(), nullptr);
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  source.Change({}, holds.get());
  EXPECT_EQ(source.changing().get(), holds.get());
  TestIterator other;
  other.source()->Change({}, holds.get());
  EXPECT_GT(source.changed_at(), Source::Now());
  holds.reset();
  EXPECT_EQ(source.changing(), nullptr);
  // All that the run has changed is as old as its end.
  EXPECT_EQ(source.changed_at(), Source::Now());
  EXPECT_EQ(other.source()->changed_at(), Source::Now());
}

TEST(SourceTest, AReaderIsHeldOnceUntilTheRunEnds) {
  const auto stage = MakeStage("stage");
  core::RefCountPtr<RunHolds> holds(new RunHolds(&stage));
  EXPECT_EQ(holds->step_container(), &stage);
  for (int i = 0; i < 2; ++i) holds->Hold(stage.get())();
  EXPECT_FALSE(BeginRun(stage.get())->is_admitted());
  holds.reset();
  EXPECT_TRUE(BeginRun(stage.get())->is_admitted());
}

TEST(SourceTest, TheRecordsOfAStageAreSavedWithOneIterator) {
  TestIterator one, other;
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  EXPECT_TRUE(holds->ClaimRecords("stage", one.source().get()));
  EXPECT_FALSE(holds->ClaimRecords("stage", other.source().get()));
  EXPECT_TRUE(holds->ClaimRecords("stage", one.source().get()));
  EXPECT_TRUE(holds->ClaimRecords("another", other.source().get()));
}

TEST(SourceTest, AStageThatBecomesAReaderDuringASaveHearsOfIt) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const auto known = MakeStage("known");
  const auto late = MakeStage("late");
  EXPECT_EQ(AddReader(&source, known.get()), nullptr);
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  Source::RestoredRecords waiting;
  EXPECT_EQ(source.ReadersToSave(holds.get(), &waiting).size(), 1);
  // The save has paused this one.
  EXPECT_EQ(AddReader(&source, known.get()), nullptr);
  EXPECT_EQ(AddReader(&source, late.get()).get(), holds.get());
  holds.reset();
  const auto later = MakeStage("later");
  EXPECT_EQ(AddReader(&source, later.get()), nullptr);
}

TEST(SourceTest, RestoredRecordsWaitUntilTheirStageReads) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"late", Saved(7)}, {"nothing", {}}});
  EXPECT_TRUE(Source::AnyKept());
  EXPECT_EQ(source.AwaitedReaders(), std::vector<std::string>{"late"});
  const auto other = MakeStage("other");
  const auto late = MakeStage("late");
  EXPECT_TRUE(TakeWaiting(&source, other.get()).empty());
  // A stage may be known as a reader long before it reads.
  AddReader(&source, late.get());
  Source::RestoredRecords to_save;
  EXPECT_EQ(source.ReadersToSave(nullptr, &to_save).size(), 1);
  EXPECT_EQ(to_save["late"].size(), 1);
  const auto waiting = TakeWaiting(&source, late.get());
  ASSERT_EQ(waiting.size(), 1);
  EXPECT_EQ(NumberIn(waiting[0]), 7);
  EXPECT_TRUE(source.AwaitedReaders().empty());
  EXPECT_TRUE(TakeWaiting(&source, late.get()).empty());
}

TEST(SourceTest, TheReadersOfAnIteratorGetWhatItsChangeRestores) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const auto stage = MakeStage("stage");
  AddReader(&source, stage.get());
  // Whoever changes the iterator has the records, and gives them to the readers.
  EXPECT_EQ(source.Change({{"stage", Saved(7)}}).size(), 1);
  EXPECT_FALSE(Source::AnyKept());
}

TEST(SourceTest, WaitingRecordsAreOfTheRunAndTheVersionThatRestoredThem) {
  TestIterator one, two;
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  one.source()->Change({{"stage", Saved(7)}}, holds.get());
  two.source()->Change({{"stage", {}}}, holds.get());
  const auto stage = MakeStage("stage");
  const auto waiting = TakeWaiting(two.source().get(), stage.get());
  ASSERT_EQ(waiting.size(), 1);
  EXPECT_EQ(waiting[0].restored_in, holds->id());
  EXPECT_FALSE(waiting[0].reads.IsStale());
  // They wait at the first iterator.
  two.source()->Change({});
  EXPECT_FALSE(waiting[0].reads.IsStale());
  one.source()->Change({});
  EXPECT_TRUE(waiting[0].reads.IsStale());
}

// A run may initialise iterators with the records of one checkpoint, and then
// restore another one.
TEST(SourceTest, WhatWaitsAtSeveralIteratorsGoesWithEach) {
  TestIterator one, two;
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  one.source()->Change({{"stage", Saved(7)}}, holds.get());
  two.source()->Change({{"stage", Saved(9)}}, holds.get());
  const auto stage = MakeStage("stage");
  const auto waiting = TakeWaiting(one.source().get(), stage.get());
  ASSERT_EQ(waiting.size(), 2);
  EXPECT_EQ(NumberIn(waiting[0]), 7);
  EXPECT_EQ(NumberIn(waiting[1]), 9);
  one.source()->Change({}, holds.get());
  EXPECT_TRUE(waiting[0].reads.IsStale());
  EXPECT_FALSE(waiting[1].reads.IsStale());
}

TEST(SourceTest, AStageGetsItsRecordsWhicheverRestoredIteratorItReadsFirst) {
  TestIterator one, two, of_another_run;
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  one.source()->Change({{"stage", Saved(7)}}, holds.get());
  two.source()->Change({{"stage", {}}}, holds.get());
  of_another_run.source()->Change({{"stage", Saved(9)}});
  holds.reset();
  // Nothing waits there that would come first.
  EXPECT_EQ(two.source()->CheckNoneWaits(nullptr), OkStatus());
  const auto stage = MakeStage("stage");
  const auto waiting = TakeWaiting(two.source().get(), stage.get());
  ASSERT_EQ(waiting.size(), 1);
  EXPECT_EQ(NumberIn(waiting[0]), 7);
  // A save of the other one waits for the stage, too.
  EXPECT_EQ(one.source()->Readers().size(), 1);
  EXPECT_TRUE(of_another_run.source()->Readers().empty());
}

TEST(SourceTest, RestoredRecordsThatDoNotFitTheirStageStay) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"stage", Saved(7)}});
  const auto stage = MakeStage("stage");
  RecordLayout layout;
  layout.tensor_names = {"image:0"};
  stage->KeepRecordsOn("CPU:0", layout);
  std::vector<Source::Waiting> waiting;
  core::RefCountPtr<RunHolds> saving;
  for (int i = 0; i < 2; ++i) {
    const Status status = source.TakeWaiting(stage.get(), &waiting, &saving);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(waiting.empty());
  }
}

TEST(SourceTest, ANextChangeForgetsWhatWaits) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"stage", Saved(7)}});
  source.GiveBack(source.version(), MakeRecord(1));
  source.Change({});
  EXPECT_FALSE(Source::AnyKept());
  EXPECT_TRUE(iterator.TakeGivenBack().empty());
  EXPECT_EQ(source.CheckNoneWaits(nullptr), OkStatus());
}

TEST(SourceTest, NobodyElseReadsBeforeTheStageOfTheRestoredRecords) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"stage", Saved(7)}});
  Status status = source.CheckNoneWaits(nullptr);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "1 records of stage 'stage'"))
      << status;
  EXPECT_TRUE(
      absl::StrContains(status.message(), "something else than a stage"))
      << status;
  const auto other = MakeStage("other");
  status = source.CheckNoneWaits(other.get());
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "another stage, 'other',"))
      << status;
  // The stage may take records of the other one.
  const auto stage = MakeStage("stage");
  EXPECT_EQ(source.CheckNoneWaits(other.get()), OkStatus());
}

TEST(SourceTest, ElementsOfTheCurrentVersionAreGivenBackInOrder) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({});
  source.GiveBack(source.version() - 1, MakeRecord(0));
  source.GiveBack(source.version(), MakeRecord(1));
  source.GiveBack(source.version(), MakeRecord(2));
  EXPECT_TRUE(Source::AnyKept());
  EXPECT_EQ(source.GivenBack().size(), 2);
  // A read that began before the change would lose it.
  EXPECT_FALSE(source.TakeGivenBack(source.version() - 1).has_value());
  EXPECT_EQ(iterator.TakeGivenBack(), (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(Source::AnyKept());
}

TEST(SourceTest, APositionIsHeldForItsInitializerUntilTheFirstUse) {
  TestIterator iterator;
  Source& source = *iterator.source();
  EXPECT_FALSE(source.ClaimPosition("initializer").has_value());
  source.HoldPosition({Tensor(int64_t{3}), "initializer"});
  EXPECT_TRUE(Source::AnyKept());
  EXPECT_FALSE(source.ClaimPosition("another").has_value());
  // A read of an iterator without a dataset uses no position.
  source.ReleasePosition(source.version());
  source.Change({}, /*changing=*/nullptr);
  // Nor does a record of the dataset before.
  source.ReleasePosition(source.version() - 1);
  // The initialiser may run again before the first use.
  for (int i = 0; i < 2; ++i) {
    const auto position = source.ClaimPosition("initializer");
    ASSERT_TRUE(position.has_value());
    EXPECT_EQ(position->position.scalar<int64_t>()(), 3);
    EXPECT_TRUE(source.IsClaimed());
    source.EndClaim();
  }
  EXPECT_FALSE(source.IsClaimed());
  ReadSet record;
  record.Add(iterator.source(), source.version());
  record.NoteUse();
  EXPECT_FALSE(source.ClaimPosition("initializer").has_value());
  EXPECT_FALSE(Source::AnyKept());
}

TEST(SourceTest, ARecordUsesThePositionsThatWereRestoredWithItsOwn) {
  for (const bool is_restored : {false, true}) {
    TestIterator one, given, kept, later;
    for (const TestIterator* iterator : {&one, &given, &kept, &later}) {
      iterator->source()->Change({});
      iterator->source()->HoldPosition(
          {Tensor(int64_t{3}), "initializer", /*dataset=*/std::nullopt,
           /*restored_in=*/iterator == &later ? 8 : 7,
           /*is_given=*/iterator != &kept});
    }
    ReadSet reads = one.reads();
    if (is_restored) reads.MarkRestored();
    // The record of a later stage of the chain, which was made from it.
    ReadSet record;
    record.Add(reads);
    record.NoteUse();
    const auto is_held = [](const TestIterator& iterator) {
      const bool is_held =
          iterator.source()->ClaimPosition("initializer").has_value();
      if (is_held) iterator.source()->EndClaim();
      return is_held;
    };
    EXPECT_FALSE(is_held(one));
    EXPECT_FALSE(is_held(given));
    EXPECT_EQ(is_held(kept), !is_restored);
    EXPECT_TRUE(is_held(later));
  }
}

TEST(SourceTest, AReadWaitsForTheEndOfAClaimOrItsCancellation) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.HoldPosition({Tensor(int64_t{3}), "initializer"});
  ASSERT_TRUE(source.ClaimPosition("initializer").has_value());
  CancellationManager cancelled_before;
  cancelled_before.StartCancel();
  source.AwaitEndOfClaims(&cancelled_before);
  CancellationManager cancelled, kept;
  std::atomic<bool> has_ended = false;
  std::thread to_cancel([&] { source.AwaitEndOfClaims(&cancelled); });
  std::thread to_wait([&] {
    source.AwaitEndOfClaims(&kept);
    EXPECT_TRUE(has_ended);
  });
  cancelled.StartCancel();
  to_cancel.join();
  has_ended = true;
  source.EndClaim();
  to_wait.join();
}

TEST(SourceTest, ASourceThatGoesKeepsNothing) {
  {
    TestIterator iterator;
    iterator.source()->HoldPosition({Tensor(int64_t{3}), "initializer"});
    iterator.source()->GiveBack(0, MakeRecord(1));
    EXPECT_TRUE(Source::AnyKept());
  }
  EXPECT_FALSE(Source::AnyKept());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
