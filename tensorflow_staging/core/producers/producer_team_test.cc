// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producer_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
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

// Runs of which so many may begin; any number by default.
class BoundedRuns : public RegionRuns {
 public:
  std::atomic<int> bound{-1};

  core::RefCountPtr<Stage> FindStage() const override { return nullptr; }
  ProducerId IdOf(int, uint64_t number) const override { return number; }
  bool is_bounded() const override { return bound >= 0; }
  bool MayBegin(int running) const override {
    const bool may_begin = bound < 0 || running < bound;
    if (!may_begin && !held_up_.HasBeenNotified()) held_up_.Notify();
    return may_begin;
  }
  // Waits until a run may not begin.
  void AwaitHeldUp() const { held_up_.WaitForNotification(); }
  Status Run(int, const std::shared_ptr<StagedRun>&, bool*) override {
    return OkStatus();
  }
  RunOutcome OutcomeOf(const Status&) const override {
    return RunOutcome::kFailed;
  }
  Status Close(int, uint64_t, const Status&) override { return OkStatus(); }
  Status ReadStats(BufferStats*) override { return OkStatus(); }

 private:
  mutable Notification held_up_;
};

class ProducerTeamTest : public ::testing::Test {
 protected:
  // A team of which one producer works.
  static std::unique_ptr<ProducerTeam> MakeTeam(size_t sources) {
    auto team = std::make_unique<ProducerTeam>(sources);
    team->SetActive(1);
    return team;
  }
  bool Begins(ProducerTeam* team, int index) {
    return ProducerTeam::Run(team, index, runs_).has_begun();
  }

  BoundedRuns runs_;
};

TEST_F(ProducerTeamTest, AProducerWaitsForItsTurn) {
  ProducerTeam team(/*sources=*/1);
  Notification has_turn;
  const auto thread = InThread([&] {
    EXPECT_TRUE(Begins(&team, 1));
    has_turn.Notify();
    EXPECT_FALSE(Begins(&team, 2));
  });
  EXPECT_TRUE(team.SetActive(1));
  EXPECT_FALSE(has_turn.HasBeenNotified());
  EXPECT_TRUE(team.SetActive(2));
  has_turn.WaitForNotification();
  EXPECT_TRUE(team.Stop());
  EXPECT_FALSE(team.Stop());
  EXPECT_FALSE(team.SetActive(3));
}

TEST_F(ProducerTeamTest, IdleProducersLeaveOnceOneHasLeft) {
  ProducerTeam team(/*sources=*/1);
  team.Join();
  team.Join();
  team.SetActive(1);
  EXPECT_EQ(team.GetCounts().threads, 1);
  const auto idle = InThread([&] {
    EXPECT_FALSE(Begins(&team, 1));
    team.Leave();
  });
  team.Leave();
}

TEST_F(ProducerTeamTest, StopEndsAPause) {
  ProducerTeam team(/*sources=*/1);
  const auto thread =
      InThread([&] { EXPECT_FALSE(team.Pause(std::chrono::hours(1))); });
  team.Stop();
}

TEST_F(ProducerTeamTest, ABoundHoldsRunsUpUntilItChanges) {
  const auto team = MakeTeam(/*sources=*/1);
  runs_.bound = 1;
  ProducerTeam::Run first(team.get(), 0, runs_);
  EXPECT_TRUE(first.has_begun());
  const auto second = InThread([&] {
    EXPECT_TRUE(Begins(team.get(), 0));
    EXPECT_EQ(runs_.bound, 2);
  });
  runs_.bound = 2;
  team->Wake();
}

TEST_F(ProducerTeamTest, TheEndOfARunLetsAnotherBegin) {
  const auto team = MakeTeam(/*sources=*/1);
  runs_.bound = 1;
  auto first = std::make_unique<ProducerTeam::Run>(team.get(), 0, runs_);
  Notification has_begun;
  const auto second = InThread([&] {
    if (Begins(team.get(), 0)) has_begun.Notify();
  });
  runs_.AwaitHeldUp();
  first.reset();
  EXPECT_TRUE(WaitForNotificationWithTimeout(&has_begun, /*10 s*/ 10000000));
  team->Stop();
}

TEST_F(ProducerTeamTest, AStageEndsWithTheLastOfItsSources) {
  const auto team = MakeTeam(/*sources=*/2);
  bool run_again = false;
  ProducerTeam::Run first(team.get(), 0, runs_);
  EXPECT_FALSE(first.EndSource("first", &run_again));
  EXPECT_FALSE(run_again);
  ProducerTeam::Run second(team.get(), 0, runs_);
  EXPECT_TRUE(second.EndSource("second", &run_again));
  // The next end of the data needs all sources again.
  EXPECT_FALSE(second.EndSource("second", &run_again));
}

TEST_F(ProducerTeamTest, ARecordOfAnotherSourceMayMeanOtherData) {
  const auto team = MakeTeam(/*sources=*/2);
  bool run_again = false;
  ProducerTeam::Run before(team.get(), 0, runs_);
  ProducerTeam::Run(team.get(), 0, runs_).CountRecord(std::nullopt);
  // What has ended was the data before that record.
  EXPECT_FALSE(before.EndSource("first", &run_again));
  EXPECT_FALSE(run_again);
  EXPECT_FALSE(
      ProducerTeam::Run(team.get(), 0, runs_).EndSource("second", &run_again));
  EXPECT_FALSE(before.EndSource("first", &run_again));
  EXPECT_TRUE(run_again);
}

TEST_F(ProducerTeamTest, AStageRunsAgainWithTheFirstRecordOfARunAfterItsEnd) {
  const auto team = MakeTeam(/*sources=*/1);
  team->Join();
  EXPECT_TRUE(team->GetCounts().running);
  {
    ProducerTeam::Run before(team.get(), 0, runs_);
    team->CountEnd(/*is_error=*/false);
    EXPECT_FALSE(team->GetCounts().running);
    before.CountRecord(/*micros=*/3);
    EXPECT_FALSE(team->GetCounts().running);
  }
  ProducerTeam::Run(team.get(), 0, runs_).CountRecord(std::nullopt);
  const ProducerTeam::Counts counts = team->GetCounts();
  EXPECT_TRUE(counts.running);
  EXPECT_EQ(counts.records, 2);
  EXPECT_EQ(counts.timed_records, 1);
  EXPECT_EQ(counts.record_micros, 3);
}

TEST_F(ProducerTeamTest, TheEndOfTheDataWaitsForNobodyButOtherRuns) {
  const auto team = MakeTeam(/*sources=*/1);
  ProducerTeam::Run ending(team.get(), 0, runs_);
  EXPECT_FALSE(team->LetErrorsComeFirst());
  // An error that came before is not the cause of this end.
  team->CountEnd(/*is_error=*/true);
  ProducerTeam::Run other(team.get(), 0, runs_);
  EXPECT_FALSE(team->LetErrorsComeFirst());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
