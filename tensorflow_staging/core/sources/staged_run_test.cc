// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/staged_run.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// How many runs of a stage are active.
bool HasActive(int runs, const TensorBuffer& buffer) {
  return absl::StrContains(buffer.DebugString(),
                           absl::StrCat(", ", runs, " runs active, "));
}

std::shared_ptr<StagedRun> Begin(TensorBuffer* buffer) {
  return BeginRun(buffer);
}

TEST(StagedRunTest, IsFoundByItsCancellationManagerWithinItsScope) {
  auto buffer = MakeBuffer(1);
  const auto run = Begin(buffer.get());
  CancellationManager manager, other;
  {
    const ScopedStagedRun scope(&manager, run);
    EXPECT_EQ(StagedRun::Find(&manager), run);
    EXPECT_EQ(StagedRun::Find(&other), nullptr);
    EXPECT_EQ(StagedRun::Find(nullptr), nullptr);
  }
  EXPECT_EQ(StagedRun::Find(&manager), nullptr);
}

TEST(StagedRunTest, NoRunIsNotFound) {
  CancellationManager manager;
  const ScopedStagedRun scope(&manager, nullptr);
  EXPECT_EQ(StagedRun::Find(&manager), nullptr);
}

TEST(StagedRunTest, EndsOnce) {
  auto buffer = MakeBuffer(1);
  {
    const auto run = Begin(buffer.get());
    EXPECT_TRUE(HasActive(1, *buffer)) << buffer->DebugString();
    EXPECT_FALSE(run->End(OkStatus()));
    EXPECT_TRUE(HasActive(0, *buffer)) << buffer->DebugString();
    EXPECT_FALSE(run->End(OkStatus()));
  }
  EXPECT_TRUE(HasActive(0, *buffer)) << buffer->DebugString();
}

TEST(StagedRunTest, ARunThatWasNeverAdmittedLeavesNothing) {
  auto buffer = MakeBuffer(1);
  buffer->BeginHold(nullptr)();
  {
    const auto run = Begin(buffer.get());
  }
  EXPECT_TRUE(HasActive(0, *buffer)) << buffer->DebugString();
}

TEST(StagedRunTest, SeveralReadsOfARunMayWaitForItsAdmission) {
  auto buffer = MakeBuffer(1);
  buffer->BeginHold(nullptr)();
  auto run = Begin(buffer.get());
  PutResult first, second;
  run->AwaitAdmission(nullptr, first.Callback());
  run->AwaitAdmission(nullptr, second.Callback());
  EXPECT_FALSE(run->is_admitted());
  buffer->EndHold(nullptr);
  EXPECT_EQ(first.Wait(), OkStatus());
  EXPECT_EQ(second.Wait(), OkStatus());
  EXPECT_TRUE(run->is_admitted());
  EXPECT_EQ(run->AwaitAdmission(nullptr), OkStatus());
  EXPECT_TRUE(HasActive(1, *buffer)) << buffer->DebugString();
  run.reset();
  EXPECT_TRUE(HasActive(0, *buffer)) << buffer->DebugString();
}

TEST(StagedRunTest, ACancelledRunWaitsNoLonger) {
  auto buffer = MakeBuffer(1);
  buffer->BeginHold(nullptr)();
  const auto run = Begin(buffer.get());
  CancellationManager cancellation;
  PutResult admitted;
  run->AwaitAdmission(&cancellation, admitted.Callback());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(admitted.Wait()));
  EXPECT_FALSE(run->is_admitted());
}

TEST(StagedRunTest, WhatItTakesMakesItsStageAReader) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  const auto run = Begin(buffer.get());
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  const ReadSet reads = run->reads();
  EXPECT_EQ(std::distance(reads.begin(), reads.end()), 1);
  EXPECT_EQ(iterator.source()->Readers().size(), 1);
  EXPECT_FALSE(run->IsStale());
  iterator.Change();
  EXPECT_TRUE(run->IsStale());
}

TEST(StagedRunTest, RestoredRecordsComeBeforeWhatItTakes) {
  auto buffer = MakeBuffer(2);
  TestIterator iterator;
  iterator.source()->Change({{"prefetch", {{{"record:0"}, MakeRecord(7)}}}});
  const auto run = Begin(buffer.get());
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  EXPECT_EQ(Put(run.get(), 8), OkStatus());
  EXPECT_EQ(Take(buffer.get()), 7);
  EXPECT_EQ(Take(buffer.get()), 8);
}

TEST(StagedRunTest, RestoredRecordsThatDoNotFitAreAnError) {
  auto buffer = MakeBuffer(2);
  RecordLayout layout;
  layout.tensor_names = {"image:0"};
  buffer->KeepRecordsOn("CPU:0", layout);
  TestIterator iterator;
  iterator.source()->Change({{"prefetch", {{{"record:0"}, MakeRecord(7)}}}});
  const auto run = Begin(buffer.get());
  const Status status = run->AddReads(iterator.reads());
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
}

// The first runs of the stages of a chain: of `buffer`, and of `later`, which
// waits for the record of the first.
TEST(StagedRunTest, APauseEndsTheWaitOfARunThatCanBeRepeated) {
  auto buffer = MakeBuffer(1);
  auto later = MakeBuffer(1);
  auto run = Begin(later.get());
  CancellationManager manager;
  auto scope = std::make_unique<ScopedStagedRun>(&manager, run);
  run->KeepWait([&] { buffer->EndTakesOf(run.get()); });
  TakeResult take;
  buffer->TakeAsync(&manager, take.Callback(), /*step_container=*/nullptr,
                    run.get());
  // Who pauses the later stage may hold the other one already.
  buffer->BeginHold(nullptr)();
  PutResult paused;
  later->Pause(&manager, /*cancellation=*/nullptr, paused.Callback());
  EXPECT_TRUE(errors::IsAborted(take.Wait())) << take.Wait();
  EXPECT_FALSE(paused.done());
  TakeResult next;
  buffer->TakeAsync(&manager, next.Callback(), /*step_container=*/nullptr,
                    run.get());
  EXPECT_TRUE(errors::IsAborted(next.Wait())) << next.Wait();
  EXPECT_TRUE(run->End(take.Wait()));
  EXPECT_EQ(paused.Wait(), OkStatus());
  scope.reset();
}

TEST(StagedRunTest, ARunThatWaitsAfterThePauseHasBegunIsRepeated) {
  auto later = MakeBuffer(1);
  auto run = Begin(later.get());
  CancellationManager manager;
  auto scope = std::make_unique<ScopedStagedRun>(&manager, run);
  PutResult paused;
  later->Pause(&manager, /*cancellation=*/nullptr, paused.Callback());
  EXPECT_FALSE(run->is_abandoned());
  run->KeepWait([] {});
  EXPECT_TRUE(run->is_abandoned());
  EXPECT_TRUE(run->End(errors::Aborted("repeated")));
  EXPECT_EQ(paused.Wait(), OkStatus());
  scope.reset();
}

TEST(StagedRunTest, APauseLeavesTheWaitOfAnotherRun) {
  auto buffer = MakeBuffer(1);
  auto later = MakeBuffer(1);
  EXPECT_EQ(Put(BeginRun(later.get()).get(), 1), OkStatus());
  // It is not the first run of its stage.
  auto run = Begin(later.get());
  CancellationManager manager;
  const ScopedStagedRun scope(&manager, run);
  run->KeepWait([] { FAIL(); });
  PutResult paused;
  later->Pause(&manager, /*cancellation=*/nullptr, paused.Callback());
  EXPECT_FALSE(paused.done());
  EXPECT_FALSE(run->IsStale());
  EXPECT_FALSE(run->End(OkStatus()));
  EXPECT_EQ(paused.Wait(), OkStatus());
}

TEST(StagedRunTest, AnAbandonedRunGivesBackWhatItHasReadWhenItPuts) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  iterator.source()->Change({});
  const auto run = Begin(buffer.get());
  EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
  run->Keep({{iterator.source(), iterator.source()->version()}, MakeRecord(7)});
  run->Abandon();
  EXPECT_EQ(Put(run.get(), 8), OkStatus());
  EXPECT_EQ(buffer->Size(), 0);
  EXPECT_EQ(iterator.TakeGivenBack(), std::vector<int64_t>{7});
}

TEST(StagedRunTest, OnlyAFailedRunWithoutARecordIsRepeated) {
  auto buffer = MakeBuffer(4);
  TestIterator iterator;
  const Status error = errors::OutOfRange("end of sequence");
  for (const bool changes : {false, true}) {
    for (const bool puts : {false, true}) {
      for (const bool fails : {false, true}) {
        const auto run = Begin(buffer.get());
        EXPECT_EQ(run->AddReads(iterator.reads()), OkStatus());
        if (puts) {
          EXPECT_EQ(Put(run.get(), 1), OkStatus());
        }
        if (changes) iterator.Change();
        EXPECT_EQ(run->End(fails ? error : OkStatus()),
                  changes && fails && !puts);
      }
    }
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
