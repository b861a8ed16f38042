// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

const Status& DataLoss() {
  static const auto* const status = new Status(errors::DataLoss("bad record"));
  return *status;
}

class RunGateTest : public ::testing::Test {
 protected:
  using Reads = std::shared_ptr<ReadSet>;

  // A run of a producer fails. Returns what it had read.
  Reads FailRun(uint64_t producer, const Status& status = DataLoss()) {
    gate_.Admit(producer, &due_);
    RunEnd end;
    end.producer = producer;
    end.reads = std::make_shared<ReadSet>();
    end.is_over = false;
    end.status = status;
    const Reads reads = end.reads;
    gate_.Leave(std::move(end), &due_);
    return reads;
  }

  // Does what is due.
  void RunDue() {
    due_.Run();
    due_ = DueCallbacks();
  }

  DueCallbacks due_;
  RunGate gate_;
};

TEST_F(RunGateTest, ARunThatWaitsIsAdmittedOrEnds) {
  Status first = errors::Unknown("waits"), second = first;
  gate_.waiting().Add(1, {[&](const Status& status) { first = status; }, 7});
  EXPECT_FALSE(gate_.has_producers());
  gate_.AdmitWaiting(&due_);
  EXPECT_EQ(gate_.active(), 1);
  EXPECT_TRUE(gate_.IsActive(7));
  EXPECT_FALSE(gate_.IsActive(8));
  gate_.waiting().Add(2, {[&](const Status& status) { second = status; }, 7});
  gate_.EndWaiting(errors::Cancelled("end"), &due_);
  RunDue();
  EXPECT_EQ(first, OkStatus());
  EXPECT_TRUE(errors::IsCancelled(second));
  gate_.Leave({/*producer=*/7, std::make_shared<ReadSet>()}, &due_);
  EXPECT_FALSE(gate_.IsActive(7));
  EXPECT_FALSE(gate_.has_failed_runs());
  EXPECT_TRUE(gate_.has_producers());
}

TEST_F(RunGateTest, ARunThatIsOverSaysNothingOfTheStage) {
  gate_.Admit(3, &due_);
  gate_.Leave({/*producer=*/3, std::make_shared<ReadSet>()}, &due_);
  EXPECT_FALSE(gate_.has_failed_runs());
  EXPECT_FALSE(gate_.TakeFailed().has_value());
}

TEST_F(RunGateTest, TheFirstFailedRunThatIsNotStaleCounts) {
  const Reads stale = FailRun(1), first = FailRun(2), second = FailRun(3);
  GiveBack(stale);
  const std::optional<RunEnd> failed = gate_.TakeFailed();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->reads, first);
  EXPECT_EQ(failed->producer, 2);
  EXPECT_EQ(failed->status, DataLoss());
  GiveBack(second);
  EXPECT_FALSE(gate_.TakeFailed().has_value());
  EXPECT_TRUE(gate_.has_failed_runs());
}

TEST_F(RunGateTest, AProducerThatGoesOnSkipsWhatItsFailedRunHasRead) {
  const Reads skipped = FailRun(1), of_another = FailRun(2);
  gate_.Admit(1, &due_);
  RunDue();
  EXPECT_TRUE(skipped->is_used());
  EXPECT_FALSE(of_another->is_used());
  EXPECT_FALSE(of_another->is_stale());
  EXPECT_EQ(gate_.TakeFailed()->reads, of_another);
}

// A stage may be told to take the end of its data for an error to ignore.
TEST_F(RunGateTest, AProducerThatGoesOnTriesTheEndOfTheDataAgain) {
  const Reads end = FailRun(1, errors::OutOfRange("end"));
  gate_.Admit(1, &due_);
  RunDue();
  EXPECT_TRUE(end->is_stale());
  EXPECT_FALSE(gate_.has_failed_runs());
}

TEST_F(RunGateTest, WhatFailedRunsHaveReadGoesBackIfTheStageStops) {
  const Reads reads[] = {FailRun(1), FailRun(2)};
  gate_.GiveBackFailed(&due_);
  RunDue();
  for (const Reads& read : reads) EXPECT_TRUE(read->is_stale());
  EXPECT_FALSE(gate_.TakeFailed().has_value());
  // What their producers say of them comes too late.
  EXPECT_TRUE(gate_.has_failed_runs());
  gate_.ForgetFailed(&due_);
  EXPECT_FALSE(gate_.has_failed_runs());
}

TEST_F(RunGateTest, TheFailedRunThatHasReadFirstCounts) {
  TestIterator iterator;
  const auto first = std::make_shared<ReadSet>();
  EXPECT_EQ(iterator.Read(first), 0);
  const Reads second = FailRun(2);
  EXPECT_EQ(iterator.Read(second), 1);
  gate_.Admit(1, &due_);
  gate_.Leave({/*producer=*/1, first, /*is_over=*/false, DataLoss()}, &due_);
  EXPECT_EQ(gate_.TakeFailed()->reads, first);
  EXPECT_EQ(gate_.TakeFailed()->reads, second);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
