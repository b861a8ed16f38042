// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/waiting_list.h"

#include <gtest/gtest.h>

#include <vector>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {
namespace {

struct Waiter {
  int number = 0;
  Watch watch = {};
};

TEST(WaitingListTest, TheOldestLeavesFirst) {
  WaitingList<Waiter> list;
  EXPECT_TRUE(list.empty());
  for (int i : {1, 2, 3}) list.Add(10 * i, {i});
  EXPECT_EQ(list.oldest().number, 1);
  EXPECT_EQ(list.Remove(20)->number, 2);
  EXPECT_EQ(list.Remove(20), std::nullopt);
  EXPECT_EQ(list.RemoveOldest().number, 1);
  EXPECT_EQ(list.Find(10), nullptr);
  EXPECT_EQ(list.Find(30)->number, 3);
  EXPECT_EQ(list.size(), 1);
}

TEST(WaitingListTest, SomeMayLeaveTogether) {
  WaitingList<Waiter> list;
  for (int i : {1, 2, 3, 4}) list.Add(i, {i});
  std::vector<int> left;
  for (const Waiter& waiter :
       list.RemoveIf([](const Waiter& each) { return each.number % 2 == 0; })) {
    left.push_back(waiter.number);
  }
  EXPECT_EQ(left, (std::vector<int>{2, 4}));
  EXPECT_EQ(list.size(), 2);
}

TEST(WaitingListTest, ACancellationReportsOnlyWhoStillWaits) {
  CancellationManager cancellation;
  WaitingList<Waiter> list;
  std::vector<int> cancelled;
  for (int i : {1, 2}) {
    Waiter waiter{i};
    EXPECT_TRUE(waiter.watch.AwaitCancellation(
        &cancellation, [&cancelled, i] { cancelled.push_back(i); }));
    list.Add(i, std::move(waiter));
  }
  list.RemoveOldest();
  cancellation.StartCancel();
  EXPECT_EQ(cancelled, std::vector<int>{2});
  // The manager remembers nothing of it.
  Watch late;
  EXPECT_FALSE(late.AwaitCancellation(&cancellation, [] { FAIL(); }));
}

TEST(WaitingListTest, ADeadlineEndsWithTheWait) {
  Notification second;
  DeadlineTimer timer(Env::Default(), "deadlines", [&second](uint64_t id) {
    EXPECT_EQ(id, 2);
    second.Notify();
  });
  WaitingList<Waiter> list;
  for (int i : {1, 2}) {
    Waiter waiter{i};
    EXPECT_FALSE(waiter.watch.has_deadline());
    // The first would come in an hour.
    waiter.watch.AwaitDeadline(&timer, i, i == 1 ? int64_t{3600} << 20 : 1000);
    EXPECT_TRUE(waiter.watch.has_deadline());
    list.Add(i, std::move(waiter));
  }
  EXPECT_FALSE(list.Remove(1)->watch.has_deadline());
  second.WaitForNotification();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
