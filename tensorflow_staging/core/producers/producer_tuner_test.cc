// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producer_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kSecond = 1000000;

constexpr int kCores = 4;
// Enough for a trial, and too few for the end of waits to decide it.
constexpr double kSomeIdleCores = 0.8;

// The CPU time of a second in which so many cores are idle.
int64_t CpuMicros(double idle_cores) {
  return static_cast<int64_t>(kSecond * (kCores - idle_cores));
}

// A stage whose producers make `rate` records a second each, together at most
// `most`, for steps that take at most `steps` a second with one producer, and
// fewer by `contention` for each further one.
struct Stage {
  double rate;
  double most;
  double steps;
  double contention = 0;
};

// One second of `stage` with `producers`, in which so many cores are idle.
ProducerTuner::Period Second(const Stage& stage, int producers,
                             double idle_cores = kSomeIdleCores) {
  const double made = std::min(stage.rate * producers, stage.most);
  const double steps = stage.steps - stage.contention * (producers - 1);
  const double taken = std::min(made, steps);
  ProducerTuner::Period period;
  period.micros = kSecond;
  period.put = period.taken = static_cast<int64_t>(taken);
  period.take_wait_micros = static_cast<int64_t>(kSecond * (1 - taken / steps));
  period.put_wait_micros =
      static_cast<int64_t>(kSecond * producers * (1 - taken / made));
  period.cpu_micros = CpuMicros(idle_cores);
  return period;
}

// Runs `seconds` seconds of `stage`, in which so many cores are idle. Returns
// in how many the number changed.
int Simulate(const Stage& stage, int seconds, ProducerTuner* tuner,
             double idle_cores = kSomeIdleCores) {
  int changes = 0;
  for (int i = 0; i < seconds; ++i) {
    changes += tuner->OnPeriod(Second(stage, tuner->producers(), idle_cores));
  }
  return changes;
}

TEST(ProducerTunerTest, OneProducerIsEnoughForASlowStep) {
  ProducerTuner tuner(8, kCores);
  EXPECT_EQ(Simulate({100, 1e9, 50}, 100, &tuner), 0);
  EXPECT_EQ(tuner.producers(), 1);
  EXPECT_TRUE(tuner.settled());
}

TEST(ProducerTunerTest, ProducersAreAddedUntilTheStepDoesNotWait) {
  ProducerTuner tuner(8, kCores);
  Simulate({100, 1e9, 350}, 30, &tuner);
  EXPECT_EQ(tuner.producers(), 4);
  EXPECT_EQ(Simulate({100, 1e9, 350}, 100, &tuner), 0);
  EXPECT_TRUE(tuner.settled());
}

// Enough for each number that steps and source demand.
constexpr int kMost = 64;
// No record takes CPU time.
constexpr double kAllCores = kCores;

TEST(ProducerTunerTest, ATrialBeginsWithWhatLittlesLawDemands) {
  ProducerTuner tuner(kMost, kCores);
  const Stage stage = {100, 1e9, 1000};
  EXPECT_EQ(Simulate(stage, 2, &tuner, kAllCores), 1);
  // If steps that do not wait were as much faster as they may be, it took 13.
  EXPECT_EQ(tuner.producers(), 14);
  EXPECT_EQ(Simulate(stage, 100, &tuner, kAllCores), 1);
  EXPECT_EQ(tuner.producers(), 11);
  EXPECT_TRUE(tuner.settled());
}

TEST(ProducerTunerTest, TheCoresBoundATrial) {
  ProducerTuner tuner(kMost, kCores);
  // All four could compute 400 records a second.
  EXPECT_EQ(Simulate({100, 1e9, 1000}, 2, &tuner, kCores - 1), 1);
  EXPECT_EQ(tuner.producers(), 5);
}

TEST(ProducerTunerTest, SeveralConsumersThatWaitGetAsManyAsTheCoresAllow) {
  for (const auto& [idle_cores, producers] :
       {std::pair(kCores - 1.0, 5), std::pair(kAllCores, kMost)}) {
    ProducerTuner tuner(kMost, kCores);
    ProducerTuner::Period period = Second({100, 1e9, 1000}, 1, idle_cores);
    period.take_wait_micros = 3 * kSecond;
    tuner.OnPeriod(period);
    EXPECT_TRUE(tuner.OnPeriod(period));
    EXPECT_EQ(tuner.producers(), producers);
  }
}

TEST(ProducerTunerTest, ALargeTrialWithoutAClearGainBecomesATrialOfOne) {
  ProducerTuner tuner(kMost, kCores);
  const Stage stage = {100, 105, 1000};
  Simulate(stage, 2, &tuner, kAllCores);
  EXPECT_EQ(tuner.producers(), 14);
  // The first period of a trial is not compared.
  Simulate(stage, 2, &tuner, kAllCores);
  EXPECT_EQ(tuner.producers(), 14);
  Simulate(stage, 1, &tuner, kAllCores);
  EXPECT_EQ(tuner.producers(), 2);
  // A gain of 5 % is found in as many periods as ever. Trials after that are of
  // one producer.
  for (int i = 0; i < 100; ++i) {
    Simulate(stage, 1, &tuner, kAllCores);
    EXPECT_LE(tuner.producers(), 3) << "in period " << i;
  }
}

TEST(ProducerTunerTest, ProducersThatQueueForTheSourceGo) {
  ProducerTuner tuner(kMost, kCores);
  // Three producers reach the limit of the source; a fourth is for variation.
  const Stage stage = {100, 300, 1000};
  Simulate(stage, 2, &tuner, kAllCores);
  EXPECT_EQ(tuner.producers(), 14);
  Simulate(stage, 3, &tuner, kAllCores);
  EXPECT_EQ(tuner.producers(), 4);
  for (int i = 0; i < 100; ++i) {
    Simulate(stage, 1, &tuner, kAllCores);
    EXPECT_LE(tuner.producers(), 5) << "in period " << i;
  }
}

TEST(ProducerTunerTest, ProducersThatSlowEachOtherOnBusyCoresStay) {
  ProducerTuner tuner(kMost, kCores);
  // Cores that compute twice as long if all of them compute.
  Simulate({100, 1e9, 1000}, 2, &tuner, kCores - 1);
  EXPECT_EQ(tuner.producers(), 5);
  EXPECT_EQ(Simulate({100, 200, 1000}, 100, &tuner, /*idle_cores=*/0), 0);
}

TEST(ProducerTunerTest, OneLongWaitIsNoReasonForATrial) {
  ProducerTuner tuner(kMost, kCores);
  const Stage stage = {100, 1e9, 90};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Simulate(stage, 10, &tuner, kAllCores), 0);
    EXPECT_EQ(Simulate({20, 1e9, 90}, 1, &tuner, kAllCores), 0);
  }
}

TEST(ProducerTunerTest, PeriodsOfAnotherLoadDoNotCount) {
  ProducerTuner tuner(kMost, kCores);
  EXPECT_EQ(Simulate({1000, 1e9, 500}, 30, &tuner, kAllCores), 0);
  // Records take fifty times as long.
  const Stage slow = {20, 1e9, 500};
  EXPECT_EQ(Simulate(slow, 2, &tuner, kAllCores), 1);
  EXPECT_EQ(tuner.producers(), 33);
  Simulate(slow, 100, &tuner, kAllCores);
  EXPECT_GE(tuner.producers(), 25);
  EXPECT_TRUE(tuner.settled());
}

TEST(ProducerTunerTest, ATrialEndsWhileTheLoadChangesByTurns) {
  ProducerTuner tuner(2, kCores);
  EXPECT_EQ(Simulate({90, 1e9, 100}, 7, &tuner), 1);
  for (int i = 0; i < 10; ++i) {
    Simulate({90, 1e9, 90}, 3, &tuner);
    Simulate({20, 1e9, 90}, 1, &tuner);
  }
  EXPECT_EQ(tuner.producers(), 1);
}

TEST(ProducerTunerTest, ThereAreNeverMoreThanAllowed) {
  ProducerTuner tuner(3, kCores);
  Simulate({100, 1e9, 1000}, 100, &tuner);
  EXPECT_EQ(tuner.producers(), 3);
  EXPECT_TRUE(tuner.settled());
}

TEST(ProducerTunerTest, ProducersThatGainNothingGo) {
  ProducerTuner tuner(8, kCores);
  // Two producers reach the limit of the source.
  Simulate({100, 200, 1000}, 19, &tuner);
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, AProducerThatSlowsTheStepGoes) {
  ProducerTuner tuner(8, kCores);
  // With two producers steps no longer wait, and take longer.
  const Stage stage = {95, 1e9, 100, /*contention=*/10};
  Simulate(stage, 19, &tuner);
  EXPECT_EQ(tuner.producers(), 1);
}

TEST(ProducerTunerTest, AProducerThatGainsMoreThanItSlowsStays) {
  ProducerTuner tuner(8, kCores);
  Simulate({80, 1e9, 100, /*contention=*/10}, 30, &tuner);
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, AProducerThatSlowsTheStepAboutAsMuchAsItGainsGoes) {
  ProducerTuner tuner(8, kCores);
  // Steps no longer wait for a tenth of their time, and take that much longer.
  const Stage stage = {90, 1e9, 100, /*contention=*/9};
  Simulate(stage, 28, &tuner);
  EXPECT_EQ(tuner.producers(), 2);
  EXPECT_FALSE(tuner.settled());
  Simulate(stage, 7, &tuner);
  EXPECT_EQ(tuner.producers(), 1);
}

TEST(ProducerTunerTest, AProducerThatEndsShortWaitsStays) {
  ProducerTuner tuner(8, kCores);
  Simulate({97, 1e9, 100}, 19, &tuner);
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, WhereBothWaitTheCapacityMayGrowFirst) {
  ProducerTuner tuner(8, kCores);
  ProducerTuner::Period period;
  period.micros = kSecond;
  period.put = period.taken = 80;
  period.take_wait_micros = kSecond / 5;
  period.put_wait_micros = kSecond / 5;
  period.cpu_micros = CpuMicros(kSomeIdleCores);
  for (int i = 0; i < 13; ++i) {
    EXPECT_FALSE(tuner.OnPeriod(period)) << "in period " << i;
  }
  EXPECT_TRUE(tuner.OnPeriod(period));
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, WhereProducersSeldomWaitMoreOfThemComeFirst) {
  ProducerTuner tuner(kMost, kCores);
  ProducerTuner::Period period;
  period.micros = kSecond;
  period.put = period.taken = 50;
  period.take_wait_micros = kSecond / 2;
  period.put_wait_micros = kSecond / 10;
  period.cpu_micros = CpuMicros(kAllCores);
  tuner.OnPeriod(period);
  EXPECT_TRUE(tuner.OnPeriod(period));
  // Records take 18 ms, and steps 8 to 10 ms.
  EXPECT_EQ(tuner.producers(), 3);
}

TEST(ProducerTunerTest, ATrialThatBeganAtOnceIsRepeatedWithMorePeriods) {
  ProducerTuner tuner(2, kCores);
  // A gain of 12 %, which the periods before the first trial cannot show.
  const Stage stage = {60, 67, 100};
  EXPECT_EQ(Simulate(stage, 2, &tuner), 1);
  EXPECT_EQ(Simulate(stage, 8, &tuner), 1);
  EXPECT_EQ(tuner.producers(), 1);
  EXPECT_EQ(Simulate(stage, 7, &tuner), 1);
  EXPECT_EQ(Simulate(stage, 100, &tuner), 0);
  EXPECT_EQ(tuner.producers(), 2);
}

// Returns how many of 100 tuners keep a second producer of `stage` after so
// many seconds, whose records vary by the part `noise` of their number, and in
// which so many cores are idle.
int KeptAmongChance(const Stage& stage, double noise, int seconds,
                    double idle_cores = kSomeIdleCores) {
  int kept = 0;
  for (int seed = 1; seed <= 100; ++seed) {
    ProducerTuner tuner(8, kCores);
    std::minstd_rand random(7919 * seed);
    std::normal_distribution<double> varies(1, noise);
    for (int i = 0; i < seconds; ++i) {
      ProducerTuner::Period period =
          Second(stage, tuner.producers(), idle_cores);
      period.put = period.taken *= varies(random);
      tuner.OnPeriod(period);
    }
    kept += tuner.producers() > 1;
  }
  return kept;
}

TEST(ProducerTunerTest, ASmallGainIsFoundAmongChance) {
  EXPECT_GE(KeptAmongChance({80e3, 84e3, 100e3}, 0.03, 60), 90);
}

// The first trial is over by then, and no second one has begun.
constexpr int kFirstTrial = 30;

TEST(ProducerTunerTest, WhereCoresAreIdleTheEndOfWaitsSuffices) {
  // A gain of 6 % among speeds that vary by 7 %.
  const Stage stage = {94e3, 1e9, 100e3};
  EXPECT_GE(KeptAmongChance(stage, 0.07, kFirstTrial, /*idle_cores=*/1), 90);
  EXPECT_LE(KeptAmongChance(stage, 0.07, kFirstTrial, kSomeIdleCores), 60);
}

TEST(ProducerTunerTest, WhereCoresAreIdleAProducerThatSlowsTheStepGoes) {
  // Producers and steps compete for something else, such as a lock.
  const Stage stage = {94e3, 1e9, 100e3, /*contention=*/8e3};
  EXPECT_LE(KeptAmongChance(stage, 0.02, kFirstTrial, /*idle_cores=*/1), 5);
}

TEST(ProducerTunerTest, WhereCoresAreIdleWaitsThatGoOnNeedAGain) {
  const Stage stage = {90e3, 90e3, 100e3};
  EXPECT_LE(KeptAmongChance(stage, 0.05, kFirstTrial, /*idle_cores=*/1), 5);
}

// Runs 100 seconds of `stage`, in which so many cores are idle. Returns the
// number of producers.
int ProducersAfter(const Stage& stage, double idle_cores) {
  ProducerTuner tuner(8, kCores);
  Simulate(stage, 100, &tuner, idle_cores);
  EXPECT_TRUE(tuner.settled());
  return tuner.producers();
}

TEST(ProducerTunerTest, WhereCoresAreSaturatedThereIsNoTrial) {
  const Stage long_wait = {50, 1e9, 100};
  EXPECT_EQ(ProducersAfter(long_wait, /*idle_cores=*/0.2), 1);
  EXPECT_EQ(ProducersAfter(long_wait, /*idle_cores=*/0.3), 2);
}

TEST(ProducerTunerTest, AShortWaitNeedsMoreIdleCoresForATrial) {
  const Stage short_wait = {90, 1e9, 100};
  EXPECT_EQ(ProducersAfter(short_wait, /*idle_cores=*/0.5), 1);
  EXPECT_EQ(ProducersAfter(short_wait, /*idle_cores=*/0.7), 2);
}

TEST(ProducerTunerTest, ATrialBeginsOnceCoresAreIdle) {
  ProducerTuner tuner(2, kCores);
  const Stage stage = {50, 1e9, 100};
  EXPECT_EQ(Simulate(stage, 100, &tuner, /*idle_cores=*/0), 0);
  EXPECT_EQ(Simulate(stage, 20, &tuner), 1);
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, ChanceSeldomKeepsAProducer) {
  EXPECT_LE(KeptAmongChance({90e3, 90e3, 100e3}, 0.05, 2000), 20);
}

TEST(ProducerTunerTest, TrialsThatFailBecomeRare) {
  ProducerTuner tuner(8, kCores);
  Simulate({100, 200, 1000}, 10000, &tuner);
  // Each trial changes the number twice; the longest pause is 1,280 periods.
  EXPECT_LE(Simulate({100, 200, 1000}, 10000, &tuner), 16);
}

TEST(ProducerTunerTest, ATrialSucceedsOnceTheLimitIsGone) {
  ProducerTuner tuner(8, kCores);
  Simulate({100, 200, 1000}, 100, &tuner);
  Simulate({100, 1e9, 470}, 200, &tuner);
  EXPECT_EQ(tuner.producers(), 5);
}

TEST(ProducerTunerTest, ProducersThatAreIdleGo) {
  ProducerTuner tuner(8, kCores);
  Simulate({100, 1e9, 600}, 30, &tuner);
  EXPECT_EQ(tuner.producers(), 6);
  EXPECT_EQ(Simulate({100, 1e9, 150}, 2, &tuner), 0);
  EXPECT_EQ(Simulate({100, 1e9, 150}, 1, &tuner), 1);
  EXPECT_EQ(tuner.producers(), 2);
  EXPECT_EQ(Simulate({100, 1e9, 150}, 100, &tuner), 0);
}

TEST(ProducerTunerTest, OnlyProducersThatAreIdleInEachOfSeveralPeriodsGo) {
  ProducerTuner tuner(8, kCores);
  Simulate({100, 1e9, 600}, 30, &tuner);
  EXPECT_EQ(Simulate({100, 1e9, 150}, 1, &tuner), 0);
  EXPECT_EQ(Simulate({100, 1e9, 450}, 1, &tuner), 0);
  EXPECT_EQ(Simulate({100, 1e9, 150}, 1, &tuner), 1);
  EXPECT_EQ(tuner.producers(), 5);
}

// Two periods of `stage`: no step ran for a while, and `producers` waited for
// room. The first period ended before the last of them had room.
std::array<ProducerTuner::Period, 2> Pause(const Stage& stage, int producers) {
  ProducerTuner::Period pause;
  pause.micros = 10 * kSecond;
  pause.put = pause.taken = 20;
  pause.put_wait_micros = (producers - 1) * pause.micros;
  pause.cpu_micros = CpuMicros(kSomeIdleCores);
  ProducerTuner::Period next = Second(stage, producers);
  next.put_wait_micros += pause.micros;
  return {pause, next};
}

TEST(ProducerTunerTest, APauseOfTheProgramTakesNoProducerAway) {
  ProducerTuner tuner(8, kCores);
  const Stage stage = {100, 1e9, 350};
  Simulate(stage, 30, &tuner);
  EXPECT_EQ(tuner.producers(), 4);
  for (int i = 0; i < 10; ++i) {
    for (const ProducerTuner::Period& period : Pause(stage, 4)) {
      EXPECT_FALSE(tuner.OnPeriod(period));
    }
    Simulate(stage, 1, &tuner);
  }
  EXPECT_EQ(tuner.producers(), 4);
}

TEST(ProducerTunerTest, APauseOfTheProgramFailsNoTrial) {
  ProducerTuner tuner(2, kCores);
  const Stage stage = {100, 1e9, 150};
  EXPECT_EQ(Simulate(stage, 2, &tuner), 1);
  EXPECT_EQ(tuner.producers(), 2);
  Simulate(stage, 1, &tuner);
  for (const ProducerTuner::Period& period : Pause(stage, 2)) {
    tuner.OnPeriod(period);
  }
  Simulate(stage, 10, &tuner);
  EXPECT_EQ(tuner.producers(), 2);
}

// A second in which producers put and steps take so many records, and steps
// wait for a tenth of the time.
ProducerTuner::Period Unsteady(int64_t put, int64_t taken) {
  ProducerTuner::Period period;
  period.micros = kSecond;
  period.put = put;
  period.taken = taken;
  period.take_wait_micros = kSecond / 10;
  period.cpu_micros = CpuMicros(kSomeIdleCores);
  return period;
}

TEST(ProducerTunerTest, ATrialGoesOnWhileTheBufferFills) {
  ProducerTuner tuner(2, kCores);
  const Stage stage = {90, 1e9, 100};
  EXPECT_EQ(Simulate(stage, 7, &tuner), 1);
  // Filling the buffer slows the steps, which share the cores.
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(tuner.OnPeriod(Unsteady(95, 85))) << "in period " << i;
  }
  EXPECT_EQ(Simulate(stage, 100, &tuner), 0);
  EXPECT_EQ(tuner.producers(), 2);
  EXPECT_TRUE(tuner.settled());
}

TEST(ProducerTunerTest, ABufferThatFillsForEverEndsATrial) {
  ProducerTuner tuner(2, kCores);
  EXPECT_EQ(Simulate({90, 1e9, 100}, 7, &tuner), 1);
  int changes = 0;
  for (int i = 0; i < 30; ++i) changes += tuner.OnPeriod(Unsteady(95, 85));
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(tuner.producers(), 1);
}

TEST(ProducerTunerTest, StepsThatDrainTheBufferAreNotFast) {
  ProducerTuner tuner(2, kCores);
  // What two producers left in the buffer lasts one producer for some time.
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(tuner.OnPeriod(Unsteady(80, 100))) << "in period " << i;
  }
  const Stage stage = {86, 92, 100};
  EXPECT_EQ(Simulate(stage, 7, &tuner), 1);
  EXPECT_EQ(Simulate(stage, 100, &tuner), 0);
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, WhatTheBufferHeldIsNoGainOfATrial) {
  ProducerTuner tuner(2, kCores);
  EXPECT_EQ(Simulate({90, 1e9, 100}, 7, &tuner), 1);
  int changes = 0;
  for (int i = 0; i < 30; ++i) changes += tuner.OnPeriod(Unsteady(90, 110));
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(tuner.producers(), 1);
}

TEST(ProducerTunerTest, ATrialNeedsTwoPeriodsToCompareWith) {
  ProducerTuner tuner(2, kCores);
  ProducerTuner::Period period = Unsteady(80, 100);
  period.take_wait_micros = kSecond / 2;
  EXPECT_FALSE(tuner.OnPeriod(period));
  period.put = period.taken;
  EXPECT_FALSE(tuner.OnPeriod(period));
  EXPECT_TRUE(tuner.OnPeriod(period));
}

TEST(ProducerTunerTest, AStageThatIsNeverSteadyIsTunedToo) {
  ProducerTuner tuner(2, kCores);
  int changes = 0;
  for (int i = 0; i < 30 && changes == 0; ++i) {
    changes +=
        tuner.OnPeriod(i % 2 == 0 ? Unsteady(110, 90) : Unsteady(90, 110));
  }
  EXPECT_EQ(tuner.producers(), 2);
}

TEST(ProducerTunerTest, APeriodWithoutTimeCountsNothing) {
  ProducerTuner tuner(8, kCores);
  EXPECT_FALSE(tuner.OnPeriod({}));
  EXPECT_EQ(tuner.producers(), 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
