// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/run_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunOrderTest : public ::testing::Test {
 protected:
  // A run that has begun and reads no more.
  void BeginAndRead(uint64_t producer) {
    EXPECT_TRUE(order_.MayBegin());
    order_.Begin(producer);
    order_.EndReads(producer);
  }
  void Put(uint64_t producer) {
    order_.Put(producer, [this, producer] { puts_.push_back(producer); });
  }
  std::shared_ptr<StagedRun> MakeRun(uint64_t producer) {
    Stage* const stage = buffer_.get();
    return std::make_shared<StagedRun>(tsl::core::GetNewRef(stage), producer);
  }

  const core::RefCountPtr<TensorBuffer> buffer_{
      new TensorBuffer(TensorBuffer::Options())};
  RunOrder order_;
  std::vector<uint64_t> puts_;
};

TEST_F(RunOrderTest, OneRunReadsAtATime) {
  int changes = 0;
  order_.WhenChanged([&] { ++changes; });
  order_.Begin(1);
  EXPECT_FALSE(order_.MayBegin());
  order_.EndReads(1);
  EXPECT_TRUE(order_.MayBegin());
  EXPECT_EQ(changes, 1);
  order_.Begin(2);
  // Without EndReads: it has failed.
  order_.End(2);
  EXPECT_TRUE(order_.MayBegin());
  EXPECT_EQ(changes, 2);
}

TEST_F(RunOrderTest, PutsComeInTheOrderOfTheRuns) {
  BeginAndRead(3);
  BeginAndRead(1);
  BeginAndRead(2);
  Put(2);
  Put(1);
  EXPECT_THAT(puts_, IsEmpty());
  Put(3);
  EXPECT_THAT(puts_, ElementsAre(3, 1, 2));
}

TEST_F(RunOrderTest, ARunThatEndsWithoutARecordLetsTheNextOnesPut) {
  BeginAndRead(1);
  BeginAndRead(2);
  Put(2);
  EXPECT_THAT(puts_, IsEmpty());
  order_.End(1);
  EXPECT_THAT(puts_, ElementsAre(2));
}

TEST_F(RunOrderTest, APutOfNoRunIsCalledAtOnce) {
  BeginAndRead(1);
  Put(7);
  EXPECT_THAT(puts_, ElementsAre(7));
}

TEST_F(RunOrderTest, APutMayEndItsRun) {
  BeginAndRead(1);
  BeginAndRead(2);
  Put(2);
  order_.Put(1, [this] { order_.End(1); });
  EXPECT_THAT(puts_, ElementsAre(2));
}

TEST_F(RunOrderTest, AFailedRunWaitsForTheRecordsBefore) {
  BeginAndRead(1);
  BeginAndRead(2);
  Notification has_turn;
  const std::unique_ptr<Thread> waiting(
      Env::Default()->StartThread(ThreadOptions(), "waits", [&] {
        order_.AwaitTurn(2);
        has_turn.Notify();
      }));
  Env::Default()->SleepForMicroseconds(10000);
  EXPECT_FALSE(has_turn.HasBeenNotified());
  Put(1);
  has_turn.WaitForNotification();
}

TEST_F(RunOrderTest, RunsAfterAFailedOneAreAbandoned) {
  BeginAndRead(1);
  const auto before = MakeRun(1);
  EXPECT_TRUE(order_.SetRun(1, before));
  BeginAndRead(2);
  BeginAndRead(3);
  const auto after = MakeRun(3);
  EXPECT_TRUE(order_.SetRun(3, after));
  order_.Begin(4);
  order_.AbandonLater(2);
  EXPECT_FALSE(before->IsStale());
  EXPECT_TRUE(after->IsStale());
  // It is admitted only now.
  EXPECT_FALSE(order_.SetRun(4, MakeRun(4)));
  EXPECT_TRUE(after->End(errors::Internal("It has failed, too.")));
}

TEST_F(RunOrderTest, NoRunBeginsUntilAbandonedOnesHaveGivenBackWhatTheyRead) {
  BeginAndRead(1);
  BeginAndRead(2);
  order_.AbandonLater(1);
  EXPECT_FALSE(order_.MayBegin());
  order_.End(1);
  EXPECT_FALSE(order_.MayBegin());
  order_.End(2);
  EXPECT_TRUE(order_.MayBegin());
}

TEST_F(RunOrderTest, ARunAfterAStaleOneIsAbandoned) {
  BeginAndRead(1);
  const auto stale = MakeRun(1);
  EXPECT_TRUE(order_.SetRun(1, stale));
  BeginAndRead(2);
  const auto after = MakeRun(2);
  EXPECT_TRUE(order_.SetRun(2, after));
  stale->Abandon();
  Put(1);
  EXPECT_THAT(puts_, ElementsAre(1));
  EXPECT_TRUE(after->IsStale());
}

TEST_F(RunOrderTest, NothingWaitsAfterRelease) {
  BeginAndRead(1);
  BeginAndRead(2);
  BeginAndRead(3);
  Put(3);
  order_.Release();
  EXPECT_THAT(puts_, ElementsAre(3));
  Put(2);
  EXPECT_THAT(puts_, ElementsAre(3, 2));
  order_.AwaitTurn(1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
