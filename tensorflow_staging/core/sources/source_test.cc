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
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  for (TensorBuffer* stage :
       {first.get(), gone.get(), last.get(), first.get()}) {
    EXPECT_EQ(source.AddReader(stage, &restored, &saving), OkStatus());
    EXPECT_TRUE(restored.records.empty());
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
  EXPECT_TRUE(holds->ClaimRecords(stage.get()));
  EXPECT_FALSE(holds->ClaimRecords(stage.get()));
  EXPECT_FALSE(BeginRun(stage.get())->is_admitted());
  holds.reset();
  EXPECT_TRUE(BeginRun(stage.get())->is_admitted());
}

TEST(SourceTest, AStageThatBecomesAReaderDuringASaveHearsOfIt) {
  TestIterator iterator;
  Source& source = *iterator.source();
  const auto known = MakeStage("known");
  const auto late = MakeStage("late");
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  EXPECT_EQ(source.AddReader(known.get(), &restored, &saving), OkStatus());
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  Source::RestoredRecords waiting;
  EXPECT_EQ(source.ReadersToSave(holds.get(), &waiting).size(), 1);
  // The save has paused this one.
  EXPECT_EQ(source.AddReader(known.get(), &restored, &saving), OkStatus());
  EXPECT_EQ(saving, nullptr);
  EXPECT_EQ(source.AddReader(late.get(), &restored, &saving), OkStatus());
  EXPECT_EQ(saving.get(), holds.get());
  saving.reset();
  holds.reset();
  const auto later = MakeStage("later");
  EXPECT_EQ(source.AddReader(later.get(), &restored, &saving), OkStatus());
  EXPECT_EQ(saving, nullptr);
}

TEST(SourceTest, RestoredRecordsWaitForTheirStage) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"late", Saved(7)}});
  EXPECT_TRUE(Source::AnyKept());
  const auto other = MakeStage("other");
  const auto late = MakeStage("late");
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  EXPECT_EQ(source.AddReader(other.get(), &restored, &saving), OkStatus());
  EXPECT_TRUE(restored.records.empty());
  EXPECT_EQ(source.AddReader(late.get(), &restored, &saving), OkStatus());
  ASSERT_EQ(restored.records.size(), 1);
  EXPECT_EQ(restored.records[0].tensors[0].scalar<int64_t>()(), 7);
  EXPECT_FALSE(Source::AnyKept());
  restored = {};
  EXPECT_EQ(source.AddReader(late.get(), &restored, &saving), OkStatus());
  EXPECT_TRUE(restored.records.empty());
}

TEST(SourceTest, WaitingRecordsAreOfTheRunAndTheVersionThatRestoredThem) {
  TestIterator one, two;
  core::RefCountPtr<RunHolds> holds(new RunHolds(nullptr));
  one.source()->Change({{"stage", Saved(7)}}, holds.get());
  two.source()->Change({{"stage", {}}}, holds.get());
  const auto stage = MakeStage("stage");
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  EXPECT_EQ(two.source()->AddReader(stage.get(), &restored, &saving),
            OkStatus());
  EXPECT_EQ(restored.restored_in, holds->id());
  EXPECT_FALSE(restored.reads.IsStale());
  // They wait at the first iterator.
  two.source()->Change({});
  EXPECT_FALSE(restored.reads.IsStale());
  one.source()->Change({});
  EXPECT_TRUE(restored.reads.IsStale());
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
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  EXPECT_EQ(two.source()->AddReader(stage.get(), &restored, &saving),
            OkStatus());
  ASSERT_EQ(restored.records.size(), 1);
  EXPECT_EQ(restored.records[0].tensors[0].scalar<int64_t>()(), 7);
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
  Source::Waiting restored;
  core::RefCountPtr<RunHolds> saving;
  for (int i = 0; i < 2; ++i) {
    const Status status = source.AddReader(stage.get(), &restored, &saving);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(restored.records.empty());
  }
}

TEST(SourceTest, ANextChangeForgetsWhatWaits) {
  TestIterator iterator;
  Source& source = *iterator.source();
  source.Change({{"stage", Saved(7)}});
  source.GiveBack(source.version(), MakeRecord(1));
  source.Change({});
  EXPECT_FALSE(Source::AnyKept());
  EXPECT_FALSE(source.TakeGivenBack().has_value());
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
  EXPECT_EQ(source.TakeGivenBack()->tensors[0].scalar<int64_t>()(), 1);
  EXPECT_EQ(source.TakeGivenBack()->tensors[0].scalar<int64_t>()(), 2);
  EXPECT_FALSE(source.TakeGivenBack().has_value());
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
  record.NoteUse(/*is_restored=*/false);
  EXPECT_FALSE(source.ClaimPosition("initializer").has_value());
  EXPECT_FALSE(Source::AnyKept());
}

TEST(SourceTest, ARestoredRecordUsesAllPositionsThatItsRunHasRestored) {
  TestIterator one, other, later;
  for (const TestIterator* iterator : {&one, &other, &later}) {
    Source& source = *iterator->source();
    source.Change({}, /*changing=*/nullptr);
    source.HoldPosition({Tensor(int64_t{3}), "initializer",
                         /*dataset=*/std::nullopt,
                         /*restored_in=*/iterator == &later ? 8 : 7});
  }
  ReadSet record;
  record.Add(one.source(), one.source()->version());
  record.NoteUse(/*is_restored=*/true);
  EXPECT_FALSE(one.source()->ClaimPosition("initializer").has_value());
  EXPECT_FALSE(other.source()->ClaimPosition("initializer").has_value());
  EXPECT_TRUE(later.source()->ClaimPosition("initializer").has_value());
  later.source()->EndClaim();
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
