// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/roll_back.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

// A stage that only counts.
class FakeStage : public Stage {
 public:
  FakeStage() : Stage("fake") {}

  bool BeginRun(ProducerId producer) override { return true; }
  void AwaitRun(ProducerId producer, CancellationManager* cancellation,
                Done done) override {
    done(OkStatus());
  }
  void EndRun(RunEnd end) override {}
  void Close(const Status& cause, ProducerId producer) override {}
  void Cancel() override {}
  void OnRollBack() override { ++roll_backs_; }
  std::string DebugString() const override { return "FakeStage"; }

  int roll_backs() const { return roll_backs_; }

 private:
  int roll_backs_ = 0;
};

class RollBackTest : public ::testing::Test {
 protected:
  using Reads = std::shared_ptr<ReadSet>;

  Reads MakeReads(Stage* stage = nullptr) {
    return std::make_shared<ReadSet>(
        core::WeakPtr<Stage>(stage == nullptr ? stage_.get() : stage));
  }

  // A run reads the next number of each iterator.
  template <typename... Iterators>
  Reads ReadNext(Iterators*... iterators) {
    Reads reads = MakeReads();
    (iterators->Read(reads), ...);
    return reads;
  }

  core::RefCountPtr<FakeStage> stage_{new FakeStage};
  TestIterator one_, other_{100};
};

TEST_F(RollBackTest, WhatGoesBackIsReadAgainInOrder) {
  const Reads first = ReadNext(&one_), second = ReadNext(&one_);
  GiveBack(first);
  EXPECT_TRUE(first->is_stale());
  // With it, all that was read later.
  EXPECT_TRUE(second->is_stale());
  EXPECT_EQ(stage_->roll_backs(), 1);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(one_.Read(MakeReads()), i);
  }
}

TEST_F(RollBackTest, WhatWasReadEarlierStays) {
  const Reads first = ReadNext(&one_), second = ReadNext(&one_);
  GiveBack(second);
  EXPECT_FALSE(first->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 1);
}

TEST_F(RollBackTest, WhatAStepHasUsedStays) {
  const Reads first = ReadNext(&one_), second = ReadNext(&one_),
              third = ReadNext(&one_);
  EXPECT_TRUE(second->Use());
  GiveBack(second);
  EXPECT_FALSE(third->is_stale());
  GiveBack(first);
  EXPECT_TRUE(first->is_stale());
  EXPECT_TRUE(second->is_used());
  EXPECT_TRUE(third->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 0);
  EXPECT_EQ(one_.Read(MakeReads()), 2);
}

TEST_F(RollBackTest, ItsReadsOfOtherIteratorsGoBackToo) {
  const Reads both = ReadNext(&one_, &other_);
  const Reads after_it = ReadNext(&other_);
  const Reads after_that = ReadNext(&one_);
  RollBack().GiveBackAll(one_.source());
  for (const Reads& reads : {both, after_it, after_that}) {
    EXPECT_TRUE(reads->is_stale());
  }
  EXPECT_EQ(one_.Read(MakeReads()), 0);
  EXPECT_EQ(other_.Read(MakeReads()), 100);
}

// Each record shares an iterator with the next one.
TEST_F(RollBackTest, FollowsAnyNumberOfIterators) {
  TestIterator iterators[5];
  Reads reads[4];
  for (int i = 0; i < 4; ++i) {
    reads[i] = ReadNext(&iterators[i + 1], &iterators[i]);
  }
  RollBack().GiveBackAll(iterators[0].source());
  for (const Reads& read : reads) EXPECT_TRUE(read->is_stale());
  for (TestIterator& iterator : iterators) {
    EXPECT_EQ(iterator.Read(MakeReads()), 0);
  }
}

TEST_F(RollBackTest, AnIteratorOfWhichNothingIsOutHasNothingToGiveBack) {
  EXPECT_FALSE(RollBack().GiveBackAll(one_.source()));
  const Reads reads = ReadNext(&one_);
  {
    RollBack roll_back;
    EXPECT_TRUE(roll_back.GiveBackAll(one_.source()));
  }
  EXPECT_FALSE(RollBack().GiveBackAll(one_.source()));
  GiveBack(reads);
  EXPECT_EQ(one_.Read(MakeReads()), 0);
}

TEST_F(RollBackTest, AChangeGivesBackOnlyWhatItsHoldersHadOfOthers) {
  const Reads both = ReadNext(&one_, &other_);
  const Reads of_other = ReadNext(&other_);
  one_.Change(/*begin=*/50);
  EXPECT_TRUE(both->is_stale());
  EXPECT_TRUE(of_other->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 50);
  EXPECT_EQ(other_.Read(MakeReads()), 100);
  EXPECT_EQ(other_.Read(MakeReads()), 101);
}

TEST_F(RollBackTest, AChangeLeavesWhatAStepHasUsed) {
  const Reads both = ReadNext(&one_, &other_);
  EXPECT_TRUE(both->Use());
  one_.Change(/*begin=*/50);
  EXPECT_TRUE(both->is_used());
  EXPECT_EQ(stage_->roll_backs(), 0);
  EXPECT_EQ(other_.Read(MakeReads()), 101);
}

TEST_F(RollBackTest, WhatIsRestoredComesBeforeTheNewData) {
  ReadNext(&one_);
  one_.Change(/*begin=*/10, /*end=*/11, /*restored=*/{7, 8});
  EXPECT_EQ(one_.Unused(), (Numbers{7, 8}));
  for (int64_t number : {7, 8, 10}) {
    EXPECT_EQ(one_.Read(MakeReads()), number);
  }
  EXPECT_EQ(one_.Read(MakeReads()), kEndOfData);
}

TEST_F(RollBackTest, NothingOfAnOldVersionGoesBack) {
  // Its stage does not hear of the change before the record is given back.
  const Reads old = ReadNext(&one_);
  one_.Change(/*begin=*/50);
  const Reads current = ReadNext(&one_);
  GiveBack(old);
  EXPECT_FALSE(current->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 51);
}

TEST_F(RollBackTest, AnEndGoesBackAsAnElementDoes) {
  one_.Change(/*begin=*/0, /*end=*/0);
  const Reads end = MakeReads();
  EXPECT_EQ(one_.Read(end), kEndOfData);
  EXPECT_EQ(one_.Unused(), Numbers{kEndOfData});
  GiveBack(end);
  EXPECT_EQ(one_.Read(MakeReads()), kEndOfData);
}

// What failed may be initialised when the run is repeated.
TEST_F(RollBackTest, AnErrorNeedNotComeAgainWithTheElementsBeforeIt) {
  const Reads reads = ReadNext(&one_);
  Outcome error;
  error.status = errors::FailedPrecondition("not initialised");
  std::shared_ptr<const Outcome> outcome = std::make_shared<Outcome>(error);
  EXPECT_EQ(one_.source()->Enter(one_.source()->version(), reads, &outcome),
            Source::Got::kEntry);
  RollBack().GiveBackElements(reads);
  EXPECT_TRUE(reads->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 0);
  EXPECT_EQ(one_.Read(MakeReads()), 1);
}

TEST_F(RollBackTest, ARunThatTakesARecordHoldsWhatThatHeld) {
  const Reads record = ReadNext(&one_, &other_);
  const Reads run = MakeReads();
  EXPECT_TRUE(RollBack().Absorb(record, run));
  EXPECT_FALSE(run->empty());
  // Nothing else may use the record.
  EXPECT_FALSE(record->Use());
  EXPECT_EQ(stage_->roll_backs(), 0);
  EXPECT_EQ(one_.Unused(), Numbers{0});
  RollBack().GiveBackAll(other_.source());
  EXPECT_TRUE(run->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 0);
}

TEST_F(RollBackTest, TheStepThatTakesTheLastRecordOfAChainUsesAll) {
  const Reads record = ReadNext(&one_);
  const Reads run = ReadNext(&other_);
  EXPECT_TRUE(RollBack().Absorb(record, run));
  EXPECT_TRUE(run->Use());
  EXPECT_EQ(one_.Unused(), Numbers());
  EXPECT_EQ(other_.Unused(), Numbers());
  EXPECT_EQ(one_.ReadBeside(), 1);
  EXPECT_EQ(other_.ReadBeside(), 101);
}

TEST_F(RollBackTest, AStaleRecordIsNotTaken) {
  const Reads record = ReadNext(&one_);
  GiveBack(record);
  const Reads run = MakeReads();
  EXPECT_FALSE(RollBack().Absorb(record, run));
  EXPECT_TRUE(run->empty());
  EXPECT_FALSE(run->is_stale());
}

TEST_F(RollBackTest, WhatAStaleRunTakesGoesBack) {
  const Reads record = ReadNext(&one_, &other_);
  const Reads later = ReadNext(&one_);
  const Reads run = MakeReads();
  GiveBack(run);
  EXPECT_TRUE(RollBack().Absorb(record, run));
  EXPECT_TRUE(record->is_stale());
  EXPECT_TRUE(later->is_stale());
  EXPECT_EQ(one_.Read(MakeReads()), 0);
  EXPECT_EQ(other_.Read(MakeReads()), 100);
}

// A thread is stopped in the middle of a roll-back: of what a run held, the entry
// of one iterator is back, and that of another is not yet.
TEST_F(RollBackTest, NoStepUsesWhatWasReadInTheMiddleOfARollBack) {
  TestIterator last;
  const Reads run = ReadNext(&one_, &other_, &last);
  const Reads stops = ReadNext(&last);
  Notification is_stopped, may_go_on;
  std::thread holds_the_lock([&] {
    stops->ForEach([&](const HeldEntry&) {
      is_stopped.Notify();
      may_go_on.WaitForNotification();
    });
  });
  is_stopped.WaitForNotification();
  std::thread rolls_back([&] { RollBack().GiveBackAll(one_.source()); });
  while (!run->is_stale()) std::this_thread::yield();
  const Reads next = MakeReads();
  EXPECT_EQ(one_.Read(next), 0);
  EXPECT_EQ(other_.Read(next), 101);
  std::thread step([&] { EXPECT_FALSE(next->Use()); });
  // Time for the step, if it does not wait.
  Env::Default()->SleepForMicroseconds(20000);
  may_go_on.Notify();
  for (std::thread* thread : {&holds_the_lock, &rolls_back, &step}) {
    thread->join();
  }
  const Reads repeated = MakeReads();
  EXPECT_EQ(one_.Read(repeated), 0);
  EXPECT_EQ(other_.Read(repeated), 100);
}

TEST_F(RollBackTest, EachStageHearsOfARollBackOnce) {
  core::RefCountPtr<FakeStage> second(new FakeStage);
  const Reads reads[] = {ReadNext(&one_), ReadNext(&one_),
                         MakeReads(second.get())};
  one_.Read(reads[2]);
  RollBack roll_back;
  roll_back.GiveBackAll(one_.source());
  // Not before the caller has released its locks.
  EXPECT_EQ(stage_->roll_backs(), 0);
  roll_back.TellStages();
  EXPECT_EQ(stage_->roll_backs(), 1);
  EXPECT_EQ(second->roll_backs(), 1);
  roll_back.TellStages();
  EXPECT_EQ(stage_->roll_backs(), 1);
}

TEST_F(RollBackTest, AStageThatHasGoneHearsNothing) {
  const Reads reads = ReadNext(&one_);
  stage_.reset();
  GiveBack(reads);
  EXPECT_EQ(one_.ReadBeside(), 0);
}

TEST_F(RollBackTest, AnIteratorThatHasGoneGetsNothingBack) {
  Reads reads;
  {
    TestIterator gone;
    reads = ReadNext(&gone, &one_);
  }
  GiveBack(reads);
  EXPECT_EQ(one_.Read(MakeReads()), 0);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
