// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {
namespace {

RunEnd Failed(uint64_t producer, const std::shared_ptr<Source>& source) {
  RunEnd end;
  end.producer = producer;
  end.reads.Add(source, source->version());
  return end;
}

class RunGateTest : public ::testing::Test {
 protected:
  ~RunGateTest() override { Source::Forget(&iterator_); }

  void Change() {
    Source::RestoredRecords restored;
    source_->Change(restored);
  }

  // Only its address counts.
  const char iterator_ = 0;
  const std::shared_ptr<Source> source_ = Source::Of(&iterator_);
  RunGate gate_;
};

TEST_F(RunGateTest, ARunThatWaitsIsAdmittedOrEnds) {
  std::atomic<int64_t> admitted_at{-1};
  Status first = errors::Unknown("waits"), second = first;
  gate_.waiting().Add(
      1, {[&](const Status& status) { first = status; }, 7, &admitted_at});
  DueCallbacks due;
  gate_.AdmitWaiting(&due);
  EXPECT_EQ(gate_.active(), 1);
  EXPECT_TRUE(gate_.IsActive(7));
  EXPECT_FALSE(gate_.IsActive(8));
  EXPECT_GE(admitted_at, 0);
  gate_.waiting().Add(
      2, {[&](const Status& status) { second = status; }, 7, &admitted_at});
  gate_.EndWaiting(errors::Cancelled("end"), &due);
  due.Run();
  EXPECT_EQ(first, OkStatus());
  EXPECT_TRUE(errors::IsCancelled(second));
  gate_.Leave({/*producer=*/7, {}, /*has_put=*/true});
  EXPECT_FALSE(gate_.IsActive(7));
  EXPECT_FALSE(gate_.has_failed_runs());
}

TEST_F(RunGateTest, EachHoldNeedsItsRelease) {
  const char container = 0;
  EXPECT_FALSE(gate_.is_held());
  gate_.Hold(&container);
  gate_.Hold(&container);
  gate_.Hold(nullptr);
  EXPECT_TRUE(gate_.IsHeldBy(&container));
  // Nobody knows whose it is.
  EXPECT_FALSE(gate_.IsHeldBy(nullptr));
  gate_.Release(&container);
  EXPECT_TRUE(gate_.IsHeldBy(&container));
  gate_.Release(&container);
  EXPECT_FALSE(gate_.IsHeldBy(&container));
  EXPECT_TRUE(gate_.is_held());
  gate_.Release(nullptr);
  EXPECT_FALSE(gate_.is_held());
}

TEST_F(RunGateTest, TheEndIsWhatFailedRunsHaveFound) {
  std::optional<RunGate::End> end = gate_.FindEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->reads.empty());
  EXPECT_EQ(end->producer, std::nullopt);
  gate_.Admit(3);
  gate_.Leave(Failed(3, source_));
  end = gate_.FindEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->reads.begin()->first, source_);
  EXPECT_EQ(end->producer, 3);
  Change();
  EXPECT_EQ(gate_.FindEnd(), std::nullopt);
  gate_.ForgetFailedRuns();
  EXPECT_TRUE(gate_.FindEnd().has_value());
}

TEST_F(RunGateTest, AStaleRunSaysNothingOfTheStage) {
  gate_.Admit(3);
  RunEnd stale = Failed(3, source_);
  stale.is_stale = true;
  gate_.Leave(std::move(stale));
  EXPECT_FALSE(gate_.has_failed_runs());
}

TEST_F(RunGateTest, WhatAFailedRunHasTakenIsPutBackUnlessItsProducerGoesOn) {
  int put_back = 0;
  for (uint64_t producer : {1, 2}) {
    RunEnd failed = Failed(producer, source_);
    failed.unused.taken = std::make_shared<PutBacks::element_type>();
    failed.unused.taken->push_back([&put_back] { ++put_back; });
    gate_.Admit(producer);
    gate_.Leave(std::move(failed));
  }
  gate_.Admit(2);
  EXPECT_EQ(gate_.TakeUnused(/*undo=*/true, /*only_stale=*/true).taken,
            nullptr);
  PutBackAll(gate_.TakeUnused(/*undo=*/true).taken);
  EXPECT_EQ(put_back, 1);
  // The run of the other producer still ends the stage.
  EXPECT_EQ(gate_.FindEnd()->producer, 2);
  EXPECT_EQ(gate_.TakeUnused(/*undo=*/true).taken, nullptr);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
