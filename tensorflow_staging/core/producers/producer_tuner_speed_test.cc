// SPDX-License-Identifier: Apache-2.0
//
// How soon a stage that chooses its producers is as fast as with the best fixed
// number, on machines and with programs that are simulated.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>  // NOLINT
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/producers/tuning_periods.h"
#include "tensorflow_staging/core/testing/simulated_stage.h"

namespace tensorflow {
namespace staging {
namespace {

using Load = SimulatedStage::Load;

constexpr int kMost = 64;
constexpr double kSecond = 1e6;
// Producers begin while the session prepares the first step.
constexpr double kFirstStep = 0.5 * kSecond;
constexpr double kGoal = 0.95;

// A stage whose first step has begun.
class Running {
 public:
  explicit Running(const Load& load) : stage_(load) {}
  virtual ~Running() = default;

  void SetLoad(const Load& load) { stage_.SetLoad(load); }

  // Runs until so many seconds after the beginning of the first step. Returns
  // how many records steps have taken a second meanwhile.
  double RunUntil(double seconds) {
    if (!has_begun_) {
      has_begun_ = true;
      Run(kFirstStep);
      stage_.BeginSteps();
    }
    const double began = stage_.now();
    const int64_t taken = stage_.totals().taken;
    Run(kFirstStep + seconds * kSecond);
    return (stage_.totals().taken - taken) / (stage_.now() - began) * kSecond;
  }

 protected:
  virtual void OnRecord() {}

  SimulatedStage stage_;

 private:
  void Run(double end) {
    while (stage_.Run(end)) OnRecord();
  }

  bool has_begun_ = false;
};

class FixedStage : public Running {
 public:
  FixedStage(const Load& load, int producers) : Running(load) {
    stage_.SetProducers(producers);
  }
};

class TunedStage : public Running {
 public:
  explicit TunedStage(const Load& load)
      : Running(load), tuning_(kMost, load.cores) {}

  int producers() const { return tuning_.producers(); }

 private:
  void OnRecord() override {
    const TuningPeriods::Time now(
        std::chrono::hours(1) +
        std::chrono::microseconds(static_cast<int64_t>(stage_.now())));
    const SimulatedStage::Totals& totals = stage_.totals();
    if (!tuning_.IsDue(now, totals.put)) return;
    const bool changes = tuning_.EndPeriod(
        now, totals.put,
        TuningPeriods::Totals{/*micros=*/0, totals.put, totals.taken,
                              static_cast<int64_t>(totals.take_wait),
                              static_cast<int64_t>(totals.put_wait),
                              static_cast<int64_t>(totals.cpu)});
    if (changes) stage_.SetProducers(tuning_.producers());
  }

  TuningPeriods tuning_;
};

// Returns the records a second with the best fixed number of producers.
double Best(const Load& load) {
  double best = 0;
  for (const int producers :
       {1, 2, 3, 4, 5, 6, 8, 9, 12, 15, 16, 17, 24, 32, 34, kMost}) {
    FixedStage stage(load, producers);
    // Long enough that it hardly counts what the producers had begun before.
    stage.RunUntil(1);
    best = std::max(best, stage.RunUntil(16));
  }
  return best;
}

std::string TextOf(const Load& load) {
  return strings::StrCat(load.computes ? "computes " : "waits ", load.source,
                         " + ", load.region, " : ", load.step, " ms on ",
                         load.cores, " cores, which vary by ", load.jitter,
                         ", with a capacity of ", load.capacity);
}

// Expects `load` to be as fast as with the best number soon, and to stay so.
void ExpectGoalInASecond(const Load& load) {
  const double best = Best(load);
  TunedStage stage(load);
  stage.RunUntil(1);
  EXPECT_GE(stage.RunUntil(4), kGoal * best) << TextOf(load);
  stage.RunUntil(30);
  EXPECT_GE(stage.RunUntil(40), kGoal * best) << TextOf(load);
}

using Case = std::tuple<double, bool, int, double>;

class RatioTest : public ::testing::TestWithParam<Case> {};

TEST_P(RatioTest, ASecondAfterTheFirstStepItIsFast) {
  const auto [ratio, computes, cores, jitter] = GetParam();
  Load load;
  load.step = 2;
  load.region = ratio * load.step;
  load.computes = computes;
  load.cores = cores;
  load.jitter = jitter;
  ExpectGoalInASecond(load);
}

INSTANTIATE_TEST_SUITE_P(
    TunedStageTest, RatioTest,
    ::testing::Combine(::testing::Values(0.25, 0.5, 1.0, 1.2, 1.5, 2.0, 3.0,
                                         4.0, 8.0, 15.0, 16.0, 32.0),
                       ::testing::Bool(), ::testing::Values(2, 16, 64),
                       ::testing::Values(0.0, 0.3)));

TEST(TunedStageTest, WhatTookHalfAMinuteTakesASecond) {
  for (const bool computes : {false, true}) {
    ExpectGoalInASecond({0, 30, 2, computes});
    ExpectGoalInASecond({0, 20, 3, computes});
  }
}

TEST(TunedStageTest, AFixedCapacityDoesNotDelayIt) {
  for (const int capacity : {1, 16, 64}) {
    ExpectGoalInASecond({0, 16, 2, false, 16, 0.1, capacity});
  }
}

TEST(TunedStageTest, ASourceThatServesOneAfterTheOtherIsTheLimit) {
  for (const double source : {5, 10, 30}) {
    const Load load = {source, 30 - source, 2, false, 16, 0.1};
    ExpectGoalInASecond(load);
    TunedStage stage(load);
    stage.RunUntil(60);
    // One more that Little's law demands on average, and one on trial.
    EXPECT_LE(stage.producers(), std::ceil(30 / source) + 2) << TextOf(load);
  }
}

// Expects a stage to be fast two seconds after a change.
void ExpectGoalAfterChange(const Load& before, const Load& after) {
  TunedStage stage(before);
  stage.RunUntil(10);
  stage.SetLoad(after);
  stage.RunUntil(12);
  EXPECT_GE(stage.RunUntil(15), kGoal * Best(after))
      << TextOf(before) << ", then " << TextOf(after);
}

TEST(TunedStageTest, RecordsThatTakeLongerSoonHaveTheirProducers) {
  ExpectGoalAfterChange({0, 1, 2}, {0, 30, 2});
  ExpectGoalAfterChange({0, 8, 2}, {0, 30, 2});
}

TEST(TunedStageTest, StepsThatBecomeFasterSoonHaveTheirProducers) {
  // As on a GPU whose driver compiles kernels during the first steps.
  ExpectGoalAfterChange({0, 30, 100}, {0, 30, 2});
}

TEST(TunedStageTest, StepsThatBecomeSlowerSoonHaveFewProducers) {
  TunedStage stage({0, 30, 2});
  stage.RunUntil(5);
  EXPECT_GE(stage.producers(), 15);
  stage.SetLoad({0, 30, 25});
  stage.RunUntil(10);
  EXPECT_LE(stage.producers(), 3);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
