// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/staged_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>  // NOLINT

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/roll_back.h"
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
  buffer->Close(OkStatus());
  {
    const auto run = Begin(buffer.get());
    EXPECT_FALSE(run->is_admitted());
  }
  EXPECT_TRUE(HasActive(0, *buffer)) << buffer->DebugString();
}

TEST(StagedRunTest, SeveralReadsOfARunMayWaitForItsAdmission) {
  auto buffer = MakeBuffer(1);
  buffer->Close(OkStatus());
  auto run = Begin(buffer.get());
  PutResult first, second;
  run->AwaitAdmission(nullptr, first.Callback());
  run->AwaitAdmission(nullptr, second.Callback());
  EXPECT_FALSE(run->is_admitted());
  buffer->Resume();
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
  buffer->Close(OkStatus());
  const auto run = Begin(buffer.get());
  CancellationManager cancellation;
  PutResult admitted;
  run->AwaitAdmission(&cancellation, admitted.Callback());
  cancellation.StartCancel();
  EXPECT_TRUE(errors::IsCancelled(admitted.Wait()));
  EXPECT_FALSE(run->is_admitted());
}

TEST(StagedRunTest, IsStaleWhenSomethingElseGetsWhatItHasRead) {
  auto buffer = MakeBuffer(1);
  TestIterator iterator;
  for (int i = 0; i < 4; ++i) {
    const auto run = Begin(buffer.get());
    EXPECT_FALSE(run->IsStale());
    EXPECT_EQ(iterator.Read(*run), i == 3 ? 100 : 0);
    EXPECT_FALSE(run->IsStale());
    if (i == 0) RollBack().GiveBackAll(iterator.source());
    if (i == 1) GiveBack(run->reads());
    if (i == 2) iterator.Change(/*begin=*/100);
    if (i == 3) buffer->Discard();
    EXPECT_TRUE(run->IsStale());
    EXPECT_TRUE(absl::StrContains(run->StaleStatus().message(), "'prefetch'"));
    EXPECT_TRUE(run->End(run->StaleStatus()));
  }
  // A discard lets the element come again, too.
  EXPECT_EQ(iterator.ReadBeside(), 100);
}

TEST(StagedRunTest, OnlyAFailedRunWithoutARecordIsRepeated) {
  auto buffer = MakeBuffer(4);
  const Status error = errors::OutOfRange("end of sequence");
  for (const bool changes : {false, true}) {
    for (const bool puts : {false, true}) {
      for (const bool fails : {false, true}) {
        TestIterator iterator;
        const auto run = Begin(buffer.get());
        EXPECT_EQ(iterator.Read(*run), 0);
        if (puts) {
          EXPECT_EQ(Put(run.get(), 1), OkStatus());
          EXPECT_EQ(Take(buffer.get()), 1);
        }
        if (changes) iterator.Change();
        EXPECT_EQ(run->End(fails ? error : OkStatus()),
                  changes && fails && !puts);
      }
    }
  }
}

// An error cancels the run, and with it other reads for good.
TEST(StagedRunTest, AStaleRunLetsItsOtherReadsReturnFirst) {
  auto buffer = MakeBuffer(1);
  const auto run = Begin(buffer.get());
  EXPECT_EQ(run->EnterRead(), OkStatus());
  std::atomic<bool> has_left = false;
  std::thread fails([&] {
    run->AwaitReads();
    EXPECT_TRUE(has_left);
  });
  has_left = true;
  run->LeaveRead();
  fails.join();
}

TEST(StagedRunTest, AFailureWaitsForOtherReadsAndFailsLaterOnes) {
  auto buffer = MakeBuffer(1);
  const auto run = Begin(buffer.get());
  EXPECT_EQ(run->EnterRead(), OkStatus());
  const Status failure = errors::DataLoss("bad record");
  std::atomic<bool> has_left = false;
  std::thread fails([&] {
    run->Fail(failure);
    EXPECT_TRUE(has_left);
  });
  while (run->EnterRead().ok()) run->LeaveRead();
  has_left = true;
  run->LeaveRead();
  fails.join();
  // The first one counts.
  run->Fail(errors::Internal("second"));
  EXPECT_EQ(run->EnterRead(), failure);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
