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
