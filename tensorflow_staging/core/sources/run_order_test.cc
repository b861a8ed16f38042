// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/run_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunOrderTest : public ::testing::Test {
 protected:
  // A run that has read the next number, and reads no more.
  std::shared_ptr<ReadSet> BeginAndRead(uint64_t producer) {
    auto reads = std::make_shared<ReadSet>();
    order_.Begin(producer);
    order_.SetReads(producer, reads);
    iterator_.Read(reads);
    order_.EndReads(producer);
    return reads;
  }
  void Put(uint64_t producer) {
    order_.Put(producer, [this, producer] { puts_.push_back(producer); });
  }
  // Begins a run in a thread, and then calls `begun`.
  std::unique_ptr<Thread> BeginInThread(uint64_t producer,
                                        std::function<void()> begun) {
    return InThread([this, producer, begun = std::move(begun)] {
      order_.Begin(producer);
      begun();
    });
  }
  static std::unique_ptr<Thread> InThread(std::function<void()> work) {
    return std::unique_ptr<Thread>(
        Env::Default()->StartThread(ThreadOptions(), "waits", work));
  }

  RunOrder order_;
  TestIterator iterator_;
  std::vector<uint64_t> puts_;
};

TEST_F(RunOrderTest, OneRunReadsAtATime) {
  order_.Begin(1);
  std::atomic<bool> has_read{false};
  const auto second = BeginInThread(2, [&] { EXPECT_TRUE(has_read); });
  has_read = true;
  order_.EndReads(1);
}

TEST_F(RunOrderTest, ARunThatEndsReadsNoMore) {
  order_.Begin(1);
  std::atomic<bool> has_ended{false};
  const auto second = BeginInThread(2, [&] { EXPECT_TRUE(has_ended); });
  has_ended = true;
  order_.End(1);
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
  std::atomic<bool> has_put{false};
  const auto failed = InThread([&] {
    order_.AwaitTurn(2);
    EXPECT_TRUE(has_put);
  });
  has_put = true;
  Put(1);
}

TEST_F(RunOrderTest, RunsAfterAFailedOneGiveBackWhatTheyHaveRead) {
  const auto before = BeginAndRead(1);
  BeginAndRead(2);
  const auto after = BeginAndRead(3);
  order_.Begin(4);
  order_.AbandonLater(2);
  EXPECT_FALSE(before->is_stale());
  EXPECT_TRUE(after->is_stale());
  // The run is admitted only now.
  const auto late = std::make_shared<ReadSet>();
  order_.SetReads(4, late);
  EXPECT_TRUE(late->is_stale());
}

TEST_F(RunOrderTest, NoRunBeginsUntilAbandonedOnesHaveEnded) {
  BeginAndRead(1);
  BeginAndRead(2);
  order_.AbandonLater(1);
  std::atomic<int> ended{0};
  const auto next = BeginInThread(3, [&] { EXPECT_EQ(ended, 2); });
  ++ended;
  order_.End(1);
  ++ended;
  order_.End(2);
}

TEST_F(RunOrderTest, ARunAfterAStaleOneIsAbandoned) {
  const auto stale = BeginAndRead(1);
  const auto after = std::make_shared<ReadSet>();
  order_.Begin(2);
  order_.SetReads(2, after);
  GiveBack(stale);
  EXPECT_FALSE(after->is_stale());
  Put(1);
  EXPECT_THAT(puts_, ElementsAre(1));
  EXPECT_TRUE(after->is_stale());
}

TEST_F(RunOrderTest, NothingWaitsAfterRelease) {
  order_.Begin(1);
  const auto waiting = BeginInThread(2, [&] { order_.AwaitTurn(2); });
  order_.Release();
}

// Whoever reads on gets the numbers in order.
TEST_F(RunOrderTest, AfterReleaseNoRecordComesBeforeAnEarlierOne) {
  const auto first = BeginAndRead(1);
  const auto second = BeginAndRead(2);
  const auto third = BeginAndRead(3);
  Put(3);
  order_.Release();
  EXPECT_THAT(puts_, ElementsAre(3));
  EXPECT_TRUE(third->is_stale());
  EXPECT_FALSE(second->is_stale());
  Put(1);
  Put(2);
  EXPECT_FALSE(first->is_stale());
  EXPECT_FALSE(second->is_stale());
  EXPECT_EQ(iterator_.Read(std::make_shared<ReadSet>()), 2);
}

TEST_F(RunOrderTest, AfterReleaseWhatComesFromNoIteratorIsKept) {
  BeginAndRead(1);
  const auto reads = std::make_shared<ReadSet>();
  order_.Begin(2);
  order_.SetReads(2, reads);
  order_.EndReads(2);
  order_.Release();
  Put(2);
  EXPECT_THAT(puts_, ElementsAre(2));
  EXPECT_FALSE(reads->is_stale());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
