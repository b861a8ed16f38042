// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_team.h"

#include <gtest/gtest.h>

#include <memory>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {
namespace {

std::unique_ptr<Thread> InThread(std::function<void()> work) {
  return std::unique_ptr<Thread>(
      Env::Default()->StartThread(ThreadOptions(), "producer", work));
}

TEST(ProducerTeamTest, AProducerWaitsForItsTurn) {
  ProducerTeam team(/*sources=*/1);
  Notification has_turn;
  const auto thread = InThread([&] {
    EXPECT_TRUE(team.AwaitTurn(1));
    has_turn.Notify();
    EXPECT_FALSE(team.AwaitTurn(2));
  });
  EXPECT_TRUE(team.SetActive(1));
  EXPECT_FALSE(has_turn.HasBeenNotified());
  EXPECT_TRUE(team.SetActive(2));
  has_turn.WaitForNotification();
  EXPECT_TRUE(team.Stop());
  EXPECT_FALSE(team.Stop());
  EXPECT_FALSE(team.SetActive(3));
}

TEST(ProducerTeamTest, IdleProducersLeaveOnceOneHasLeft) {
  ProducerTeam team(/*sources=*/1);
  team.Join();
  team.Join();
  team.SetActive(1);
  EXPECT_EQ(team.GetCounts().threads, 1);
  const auto idle = InThread([&] {
    EXPECT_FALSE(team.AwaitTurn(1));
    team.Leave();
  });
  team.Leave();
}

TEST(ProducerTeamTest, StopEndsAPause) {
  ProducerTeam team(/*sources=*/1);
  const auto thread =
      InThread([&] { EXPECT_FALSE(team.Pause(std::chrono::hours(1))); });
  team.Stop();
}

TEST(ProducerTeamTest, AStageEndsWithTheLastOfItsSources) {
  ProducerTeam team(/*sources=*/2);
  bool run_again = false;
  ProducerTeam::Run first(&team);
  EXPECT_FALSE(first.EndSource("first", &run_again));
  EXPECT_FALSE(run_again);
  ProducerTeam::Run second(&team);
  EXPECT_TRUE(second.EndSource("second", &run_again));
  // The next end of the data needs all sources again.
  EXPECT_FALSE(second.EndSource("second", &run_again));
}

TEST(ProducerTeamTest, ARecordOfAnotherSourceMayMeanOtherData) {
  ProducerTeam team(/*sources=*/2);
  bool run_again = false;
  ProducerTeam::Run before(&team);
  ProducerTeam::Run(&team).CountRecord(std::nullopt);
  // What has ended was the data before that record.
  EXPECT_FALSE(before.EndSource("first", &run_again));
  EXPECT_FALSE(run_again);
  EXPECT_FALSE(ProducerTeam::Run(&team).EndSource("second", &run_again));
  EXPECT_FALSE(before.EndSource("first", &run_again));
  EXPECT_TRUE(run_again);
}

TEST(ProducerTeamTest, AStageRunsAgainWithTheFirstRecordOfARunAfterItsEnd) {
  ProducerTeam team(/*sources=*/1);
  team.Join();
  EXPECT_TRUE(team.GetCounts().running);
  {
    ProducerTeam::Run before(&team);
    team.CountEnd(/*is_error=*/false);
    EXPECT_FALSE(team.GetCounts().running);
    before.CountRecord(/*micros=*/3);
    EXPECT_FALSE(team.GetCounts().running);
  }
  ProducerTeam::Run(&team).CountRecord(std::nullopt);
  const ProducerTeam::Counts counts = team.GetCounts();
  EXPECT_TRUE(counts.running);
  EXPECT_EQ(counts.records, 2);
  EXPECT_EQ(counts.timed_records, 1);
  EXPECT_EQ(counts.record_micros, 3);
}

TEST(ProducerTeamTest, TheEndOfTheDataWaitsForNobodyButOtherRuns) {
  ProducerTeam team(/*sources=*/1);
  ProducerTeam::Run ending(&team);
  EXPECT_FALSE(team.LetErrorsComeFirst());
  // An error that came before is not the cause of this end.
  team.CountEnd(/*is_error=*/true);
  ProducerTeam::Run other(&team);
  EXPECT_FALSE(team.LetErrorsComeFirst());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
