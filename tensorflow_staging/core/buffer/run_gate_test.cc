// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

// As the reports of a server's producers.
const ProducerId kNotToldApart(/*source=*/0, /*number=*/0);

class RunGateTest : public ::testing::Test {
 protected:
  using Reads = std::shared_ptr<ReadSet>;

  // A run of a producer fails. Returns what it had read.
  Reads FailRun(ProducerId producer, const Status& status = DataLoss()) {
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
  EXPECT_TRUE(gate_.IsEarlierActive(7));
  EXPECT_FALSE(gate_.IsEarlierActive(8));
  gate_.waiting().Add(2, {[&](const Status& status) { second = status; }, 7});
  gate_.EndWaiting(errors::Cancelled("end"), &due_);
  RunDue();
  EXPECT_EQ(first, OkStatus());
  EXPECT_TRUE(errors::IsCancelled(second));
  gate_.Leave({/*producer=*/7, std::make_shared<ReadSet>()}, &due_);
  EXPECT_FALSE(gate_.IsEarlierActive(7));
  EXPECT_TRUE(gate_.has_producers());
}

TEST_F(RunGateTest, ARunThatIsOverSaysNothingOfTheStage) {
  gate_.Admit(3, &due_);
  gate_.Leave({/*producer=*/3, std::make_shared<ReadSet>()}, &due_);
  const std::optional<RunGate::Report> report =
      gate_.TakeReport(DataLoss(), kNotToldApart);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->reads, nullptr);
}

TEST_F(RunGateTest, AReportIsOfTheRunThatHasFailedWithIt) {
  const Reads one = FailRun(1), other = FailRun(2, errors::Internal("other"));
  // The producer adds to the message.
  const std::optional<RunGate::Report> report =
      gate_.TakeReport(errors::Internal("other. Advice."), kNotToldApart);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->reads, other);
  EXPECT_EQ(report->producer->number, 2);
  EXPECT_EQ(gate_.TakeReport(DataLoss(), kNotToldApart)->reads, one);
}

TEST_F(RunGateTest, AReportWhoseMessageAServerHasCutIsOfItsRun) {
  const std::string message(5000, 'x');
  const Reads one = FailRun(1, errors::Internal(message));
  const std::optional<RunGate::Report> report = gate_.TakeReport(
      errors::Internal("From a worker: ", message.substr(0, 3000)),
      kNotToldApart);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->reads, one);
}

TEST_F(RunGateTest, AKnownProducerReportsItsOwnRun) {
  const Reads one = FailRun(1), other = FailRun(2);
  EXPECT_EQ(gate_.TakeReport(DataLoss(), 2)->reads, other);
  // Late, of what has been seen to.
  EXPECT_FALSE(gate_.TakeReport(OkStatus(), 2).has_value());
  GiveBack(one);
  EXPECT_FALSE(gate_.TakeReport(DataLoss(), 1).has_value());
  // It could not run at all.
  EXPECT_EQ(gate_.TakeReport(DataLoss(), 3)->reads, nullptr);
}

TEST_F(RunGateTest, OfSeveralRunsThatFailTheOneThatHasReadFirstCounts) {
  TestIterator iterator;
  const auto first = std::make_shared<ReadSet>();
  EXPECT_EQ(iterator.Read(first), 0);
  const Reads second = FailRun(2, errors::OutOfRange("end"));
  EXPECT_EQ(iterator.Read(second), 1);
  gate_.Admit(1, &due_);
  gate_.Leave(
      {/*producer=*/1, first, /*is_over=*/false, errors::OutOfRange("end")},
      &due_);
  EXPECT_EQ(gate_.TakeReport(OkStatus(), kNotToldApart)->reads, first);
  EXPECT_EQ(gate_.TakeEnd(), second);
  EXPECT_EQ(gate_.TakeEnd(), nullptr);
}

TEST_F(RunGateTest, AReportOfWhatWasRolledBackEndsNoStage) {
  GiveBack(FailRun(1));
  EXPECT_FALSE(gate_.TakeReport(DataLoss(), kNotToldApart).has_value());
}

// A stage may be told to take an error for the end of its data, or to ignore it.
TEST_F(RunGateTest, ARecordPassesWhatFailedBeforeIt) {
  TestIterator iterator;
  const Reads passed = FailRun(1);
  EXPECT_EQ(iterator.Read(passed), 0);
  const auto record = std::make_shared<ReadSet>();
  EXPECT_EQ(iterator.Read(record), 1);
  const Reads later = FailRun(2);
  EXPECT_EQ(iterator.Read(later), 2);
  gate_.PassFailed(1, record, &due_);
  RunDue();
  EXPECT_FALSE(later->is_stale());
  // The step that takes the record uses both.
  EXPECT_TRUE(record->Use());
  EXPECT_EQ(iterator.Unused(), Numbers{2});
}

// Producers that stop do not wait for each other any more.
TEST_F(RunGateTest, ARecordDoesNotPassARunThatFailsAfterItHasRead) {
  const ProducerId one(/*source=*/0, /*number=*/1, /*is_ordered=*/true);
  const ProducerId other(/*source=*/0, /*number=*/2, /*is_ordered=*/true);
  TestIterator iterator;
  const Reads passed = FailRun(other);
  EXPECT_EQ(iterator.Read(passed), 0);
  const auto record = std::make_shared<ReadSet>();
  EXPECT_EQ(iterator.Read(record), 1);
  const Reads later = FailRun(other);
  EXPECT_EQ(iterator.Read(later), 2);
  gate_.PassFailed(one, record, &due_);
  RunDue();
  EXPECT_TRUE(record->Use());
  EXPECT_EQ(iterator.Unused(), Numbers{2});
  gate_.GiveBackFailed(&due_);
  RunDue();
  EXPECT_TRUE(later->is_stale());
}

TEST_F(RunGateTest, AProducerThatGoesOnTriesTheEndOfTheDataAgain) {
  const Reads end = FailRun(1, errors::OutOfRange("end"));
  const Reads of_another = FailRun(2, errors::OutOfRange("end"));
  gate_.Admit(1, &due_);
  RunDue();
  EXPECT_TRUE(end->is_stale());
  EXPECT_FALSE(of_another->is_stale());
  EXPECT_EQ(gate_.TakeReport(OkStatus(), kNotToldApart)->reads, of_another);
}

TEST_F(RunGateTest, WhatFailedRunsHaveReadGoesBackIfTheStageStops) {
  const Reads reads[] = {FailRun(1), FailRun(2)};
  gate_.GiveBackFailed(&due_);
  RunDue();
  for (const Reads& read : reads) EXPECT_TRUE(read->is_stale());
  // What their producers say of them comes too late.
  EXPECT_FALSE(gate_.TakeReport(DataLoss(), kNotToldApart).has_value());
  gate_.ForgetFailed(&due_);
  EXPECT_TRUE(gate_.TakeReport(DataLoss(), kNotToldApart).has_value());
}

TEST_F(RunGateTest, AJoinHasNoEndWhileAnotherSourceMayHaveMore) {
  const Status end = errors::OutOfRange("end");
  const ProducerId one(/*source=*/1, /*number=*/1), other(2, 2);
  const auto fail = [&](ProducerId producer) {
    gate_.Admit(producer, &due_);
    RunEnd run = {producer, std::make_shared<ReadSet>(), /*is_over=*/false,
                  end};
    const Reads reads = run.reads;
    gate_.Leave(std::move(run), &due_);
    return reads;
  };
  GiveBack(fail(one));
  fail(other);
  EXPECT_FALSE(gate_.TakeReport(OkStatus(), other).has_value());
  // It reads on.
  gate_.Admit(one, &due_);
  EXPECT_FALSE(gate_.TakeReport(OkStatus(), other).has_value());
  gate_.Leave({one}, &due_);
  fail(one);
  EXPECT_TRUE(gate_.TakeReport(OkStatus(), other).has_value());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
