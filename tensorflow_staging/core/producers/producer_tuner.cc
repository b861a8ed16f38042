// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producer_tuner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "tensorflow_staging/core/producers/rank_sum.h"

namespace tensorflow {
namespace staging {
namespace {

// The part of the time for which steps may wait without consequence, and the
// gain for which a producer stays.
constexpr double kSmall = 0.02;
// A gain beyond this in so many periods is no chance, nor is a wait that could
// hide so much.
constexpr double kLarge = 0.15;
constexpr size_t kPeriodsToSee = 2;
// How many more producers there are than Little's law demands on average, so
// that a record that takes longer does not make a step wait. Simulated with
// times that vary by 30 % (producer_tuner_speed_test.cc), steps reach 97 % of the
// best speed or more with it, and 93 % without.
constexpr double kMargin = 0.05;
// What a step takes that never waits, as a part of what one takes that waits for
// each record: a thread that sleeps wakes up late, to cold caches. Producers that
// are too many go soon; that they are too few shows only in the next trial.
constexpr double kStepWithoutWaits = 0.8;
// A region that takes so many times as long as with fewer producers, though
// cores are idle, queues for something.
constexpr double kQueueing = 1.5;
// The part of its records by which a buffer may grow or shrink in a period. One
// that changes by more still fills or drains after a change of the producers:
// producers and steps that share the cores are not as fast as they will be.
constexpr double kSteadyPart = 0.05;
// In a period of few records, a buffer changes by a few of them by chance.
constexpr double kSteadyRecords = 2;
// How many periods are compared otherwise, before and after: at least, and at
// most.
constexpr size_t kPeriodsToDecide = 7;
constexpr size_t kMostPeriods = 3 * kPeriodsToDecide;
// The score of RankSumScore() that is no chance, and the one below which
// further periods are unlikely to change that. Simulated with speeds that vary
// by 2, 3 and 5 %, after 21 periods without a change: a trial that gains
// nothing succeeds in less than 1 % of all cases, and one that gains 5 % in
// 100, 99 and 65 %.
constexpr double kSignificantScore = 2.8;
constexpr double kHopelessScore = 0.5;
// The part of what steps waited before that is a gain, too, because no more than
// the wait can be gained.
constexpr double kPartOfWait = 0.5;
// No record takes less time.
constexpr double kLeastMicros = 1;
// How many cores must be idle, so that a producer takes none from the step.
constexpr double kIdleCores = 1;
// The part of the cores that must be idle for a trial: records could come
// faster by little more than that. A trial takes from the step, and a short
// wait may only be that of producers and steps for each other's cores, so it
// needs more.
constexpr double kIdlePartForLongWait = 0.06;
constexpr double kIdlePartForShortWait = 0.15;
// How much of a producer must be idle beyond those that go, so that a small
// variation does not bring one back.
constexpr double kSpare = 0.3;
// In how many periods in a row. The pause of a program, for an evaluation or a
// checkpoint, shows in two: no producer ends a period meanwhile, but those that
// wait for room count their waits one after the other when it ends.
constexpr int kIdlePeriods = 3;
// How long it rests after the first failure, and at most.
constexpr int kFirstRest = 20;
constexpr int kLongestRest = 64 * kFirstRest;

}  // namespace

void ProducerTuner::Recent::Add(const Sample& sample) {
  if (full()) samples_.pop_front();
  samples_.push_back(sample);
}

bool ProducerTuner::Recent::complete() const {
  return size() >= kPeriodsToDecide;
}

bool ProducerTuner::Recent::full() const { return size() >= kMostPeriods; }

std::vector<double> ProducerTuner::Recent::Values(
    double Sample::* value) const {
  std::vector<double> values;
  values.reserve(size());
  for (const Sample& sample : samples_) values.push_back(sample.*value);
  return values;
}

double ProducerTuner::Recent::Median(double Sample::* value) const {
  std::vector<double> values = Values(value);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

ProducerTuner::Sample ProducerTuner::SampleOf(const Period& period) const {
  const double micros = period.micros;
  // Steps that take what a buffer held before could not go on so.
  const double records = std::min(period.put, period.taken);
  const double put = std::max<double>(period.put, 1);
  const double taken = std::max<double>(period.taken, 1);
  Sample sample;
  sample.rate = records / micros;
  sample.wait = period.take_wait_micros / micros;
  sample.idle_cores = cores_ - period.cpu_micros / micros;
  sample.region = (producers_ * micros - period.put_wait_micros) / put;
  sample.step = (micros - period.take_wait_micros) / taken;
  sample.cpu = period.cpu_micros / std::max<double>(records, 1);
  return sample;
}

bool ProducerTuner::IsEvidence(const Period& period) const {
  // The first period of a trial still contains the change itself.
  if (OnTrial() && periods_ < 2) return false;
  // A large buffer may fill for ever, and one whose records take longer and
  // shorter by turns is never steady.
  if (periods_ > static_cast<int>(kMostPeriods)) return true;
  return std::abs(period.put - period.taken) <=
         std::max(kSteadyPart * period.taken, kSteadyRecords);
}

bool ProducerTuner::IsOtherLoad(const Sample& sample) const {
  return !OnTrial() && recent_.size() > 0 && sample.wait > kLarge &&
         recent_.Median(&Sample::wait) <= kSmall;
}

bool ProducerTuner::ShouldTry(double waits) const {
  if (recent_.size() < kPeriodsToSee) return false;
  const bool is_long = waits > kLarge;
  if (recent_.Median(&Sample::idle_cores) <
      cores_ * (is_long ? kIdlePartForLongWait : kIdlePartForShortWait)) {
    return false;
  }
  // Where both wait by turns, so that these producers could keep up, a larger
  // buffer comes first.
  const bool lacks = Demand(1) > (1 + kSmall) * producers_;
  if (lacks && is_long) return true;
  const size_t patience = lacks ? kPeriodsToDecide : 2 * kPeriodsToDecide;
  return static_cast<size_t>(periods_) >= patience && recent_.complete() &&
         recent_.Median(&Sample::wait) > kSmall;
}

double ProducerTuner::Demand(double part_of_step) const {
  // With several consumers, a step may seem to take no time.
  const double fastest =
      std::max({part_of_step * recent_.Median(&Sample::step),
                recent_.Median(&Sample::cpu) / cores_, kLeastMicros});
  return recent_.Median(&Sample::region) / fastest;
}

int ProducerTuner::ProducersFor(double demand) const {
  const double producers = std::ceil((1 + kMargin) * demand);
  return static_cast<int>(std::clamp<double>(producers, 1, most_));
}

bool ProducerTuner::IsClearlyFaster() const {
  if (recent_.size() < kPeriodsToSee) return false;
  const std::vector<double> rates = recent_.Values(&Sample::rate);
  return *std::min_element(rates.end() - kPeriodsToSee, rates.end()) >=
         (1 + kLarge) * before_.Median(&Sample::rate);
}

ProducerTuner::Verdict ProducerTuner::Judge() const {
  if (!recent_.complete()) return Verdict::kOpen;
  const double worthwhile =
      std::min(kSmall, kPartOfWait * before_.Median(&Sample::wait));
  const double score = RankSumScore(before_.Values(&Sample::rate),
                                    recent_.Values(&Sample::rate));
  if (score >= kSignificantScore &&
      recent_.Median(&Sample::rate) >=
          (1 + worthwhile) * before_.Median(&Sample::rate)) {
    return Verdict::kPassed;
  }
  // Few periods before the trial could never tell.
  if (!before_.complete()) return Verdict::kFailed;
  const bool ends_waits =
      recent_.Median(&Sample::idle_cores) >= kIdleCores && HasEndedWaits();
  if (recent_.full()) {
    return score >= 0 && ends_waits ? Verdict::kPassed : Verdict::kFailed;
  }
  if (score < kHopelessScore && !ends_waits) return Verdict::kFailed;
  return Verdict::kOpen;
}

bool ProducerTuner::HasEndedWaits() const {
  return recent_.Median(&Sample::wait) <=
             kPartOfWait * before_.Median(&Sample::wait) &&
         RankSumScore(recent_.Values(&Sample::wait),
                      before_.Values(&Sample::wait)) >= kSignificantScore;
}

int ProducerTuner::UsefulProducers() const {
  const double region = before_.Median(&Sample::region);
  if (recent_.Median(&Sample::idle_cores) < kIdleCores ||
      recent_.Median(&Sample::region) < kQueueing * region) {
    return producers_;
  }
  return std::clamp(ProducersFor(recent_.Median(&Sample::rate) * region),
                    producers_before_ + 1, producers_);
}

int ProducerTuner::RestAfterFailure() {
  // A trial that began at once could show only a large gain. If it may have
  // gained something, the next one is compared with more.
  if (!before_.complete() &&
      recent_.Median(&Sample::rate) > before_.Median(&Sample::rate)) {
    return kPeriodsToDecide;
  }
  last_rest_ = std::clamp(2 * last_rest_, kFirstRest, kLongestRest);
  return last_rest_;
}

bool ProducerTuner::OnPeriod(const Period& period) {
  if (period.micros <= 0) return false;
  ++periods_;
  if (state_ == State::kResting && --rest_ == 0) state_ = State::kWatching;
  const Sample sample = SampleOf(period);
  const bool is_evidence = IsEvidence(period);
  if (is_evidence) {
    if (IsOtherLoad(sample)) recent_ = {};
    recent_.Add(sample);
  }
  if (OnTrial()) {
    if (is_evidence && EndTrial()) return true;
    if (OnTrial()) return false;
  }
  CountSpare(static_cast<double>(period.put_wait_micros) / period.micros);
  if (sample.wait > kSmall) {
    return state_ == State::kWatching && producers_ < most_ &&
           ShouldTry(sample.wait) && BeginTrial();
  }
  return idle_periods_ >= kIdlePeriods && Change(producers_ - spare_);
}

bool ProducerTuner::BeginTrial() {
  const int one_more = producers_ + 1;
  const int producers =
      is_limited_ ? one_more
                  : std::max(ProducersFor(Demand(kStepWithoutWaits)), one_more);
  state_ = producers == one_more ? State::kOneOnTrial : State::kSeveralOnTrial;
  producers_before_ = producers_;
  before_ = recent_;
  return Change(producers);
}

bool ProducerTuner::EndTrial() {
  const bool is_clear = IsClearlyFaster();
  if (state_ == State::kSeveralOnTrial && !is_clear) {
    if (recent_.size() < kPeriodsToSee) return false;
    is_limited_ = true;
    state_ = State::kOneOnTrial;
    return Change(producers_before_ + 1);
  }
  const Verdict verdict = is_clear ? Verdict::kPassed : Judge();
  if (verdict == Verdict::kOpen) return false;
  if (verdict == Verdict::kFailed) {
    state_ = State::kResting;
    rest_ = RestAfterFailure();
    return Change(producers_before_);
  }
  state_ = State::kWatching;
  last_rest_ = 0;
  const int producers = UsefulProducers();
  is_limited_ = producers < producers_ || (is_limited_ && !is_clear);
  return producers != producers_ && Change(producers);
}

void ProducerTuner::CountSpare(double idle) {
  const int spare =
      std::clamp(static_cast<int>(idle - kSpare), 0, producers_ - 1);
  idle_periods_ = spare > 0 ? idle_periods_ + 1 : 0;
  spare_ = idle_periods_ > 1 ? std::min(spare_, spare) : spare;
}

bool ProducerTuner::Change(int producers) {
  producers_ = producers;
  periods_ = 0;
  idle_periods_ = 0;
  recent_ = {};
  return true;
}

}  // namespace staging
}  // namespace tensorflow
