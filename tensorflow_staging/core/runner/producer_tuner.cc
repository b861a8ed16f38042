// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_tuner.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <vector>

#include "tensorflow_staging/core/runner/rank_sum.h"

namespace tensorflow {
namespace staging {
namespace {

// The part of the time for which steps may wait without consequence.
constexpr double kToleratedWait = 0.02;
// A wait beyond this, and a gain beyond this in two periods, is no chance.
constexpr double kLongWait = 0.3;
constexpr double kClearGain = 0.15;
// The part of its records by which a buffer may grow or shrink in a period. One
// that changes by more still fills or drains after a change of the producers:
// producers and steps that share the cores are not as fast as they will be.
constexpr double kSteadyPart = 0.05;
// In a period of few records, a buffer changes by a few of them by chance.
constexpr double kSteadyRecords = 2;
// How many periods are compared otherwise, before and after: at least, and at
// most.
constexpr size_t kPeriodsToDecide = 7;
constexpr size_t kMostPeriods = 21;
// The score of RankSumScore() that is no chance, and the one below which
// further periods are unlikely to change that. Simulated with speeds that vary
// by 2, 3 and 5 %, after 21 periods without a change: a trial that gains
// nothing succeeds in less than 1 % of all cases, and one that gains 5 % in
// 100, 99 and 65 %.
constexpr double kSignificantScore = 2.8;
constexpr double kHopelessScore = 0.5;
// The gain for which a producer stays: this, or half of what steps waited
// before, if that is less, because no more than the wait can be gained.
constexpr double kWorthwhileGain = 0.02;
constexpr double kPartOfWait = 0.5;
// How many cores must be idle, so that a producer takes none from the step.
constexpr double kIdleCores = 1;
// The part of the cores that must be idle for a trial: records could come
// faster by little more than that. A trial takes from the step, and a short
// wait may only be that of producers and steps for each other's cores, so it
// needs more.
constexpr double kIdlePartForLongWait = 0.06;
constexpr double kIdlePartForShortWait = 0.15;
// How much of a producer must be idle beyond a whole one before one goes, so
// that a small variation does not bring it back.
constexpr double kSpare = 0.3;
// In how many periods in a row. The pause of a program, for an evaluation or a
// checkpoint, shows in two: no producer ends a period meanwhile, but those that
// wait for room count their waits one after the other when it ends.
constexpr int kIdlePeriods = 3;
// The first pause between trials, and the longest.
constexpr int kFirstPause = 20;
constexpr int kLongestPause = 20 * 64;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void ProducerTuner::Recent::Add(const Sample& sample) {
  if (full()) samples_.pop_front();
  samples_.push_back(sample);
}

bool ProducerTuner::Recent::complete() const {
  return size() >= kPeriodsToDecide;
}

bool ProducerTuner::Recent::full() const { return size() >= kMostPeriods; }

std::vector<double> ProducerTuner::Recent::Values(double Sample::*value) const {
  std::vector<double> values;
  values.reserve(size());
  for (const Sample& sample : samples_) values.push_back(sample.*value);
  return values;
}

bool ProducerTuner::IsEvidence(const Period& period) const {
  // The first period of a trial still contains the change itself.
  if (on_trial_ && periods_ < 2) return false;
  // A large buffer may fill for ever, and one whose records take longer and
  // shorter by turns is never steady.
  if (periods_ > static_cast<int>(kMostPeriods)) return true;
  return std::abs(period.put - period.taken) <=
         std::max(kSteadyPart * period.taken, kSteadyRecords);
}

bool ProducerTuner::ShouldTry(double waits, double idle) const {
  if (recent_.size() == 0) return false;
  const bool is_long = waits > kLongWait;
  if (Median(recent_.IdleCores()) <
      cores_ * (is_long ? kIdlePartForLongWait : kIdlePartForShortWait)) {
    return false;
  }
  if (idle <= kToleratedWait && is_long) return true;
  // Where both wait by turns, a larger buffer comes first.
  const size_t patience =
      idle <= kToleratedWait ? kPeriodsToDecide : 2 * kPeriodsToDecide;
  return static_cast<size_t>(periods_) >= patience && recent_.complete() &&
         Median(recent_.Waits()) > kToleratedWait;
}

bool ProducerTuner::IsClearlyFaster() const {
  if (recent_.size() < 2) return false;
  const std::vector<double> rates = recent_.Rates();
  return std::min(rates.end()[-2], rates.end()[-1]) >=
         (1 + kClearGain) * Median(before_.Rates());
}

std::optional<bool> ProducerTuner::IsWorthIt() const {
  if (IsClearlyFaster()) return true;
  if (!recent_.complete()) return std::nullopt;
  const double worthwhile =
      std::min(kWorthwhileGain, kPartOfWait * Median(before_.Waits()));
  const double score = RankSumScore(before_.Rates(), recent_.Rates());
  if (score >= kSignificantScore &&
      Median(recent_.Rates()) >= (1 + worthwhile) * Median(before_.Rates())) {
    return true;
  }
  // Few periods before the trial could never tell.
  if (!before_.complete()) return false;
  const bool ends_waits =
      Median(recent_.IdleCores()) >= kIdleCores && HasEndedWaits();
  if (recent_.full()) return score >= 0 && ends_waits;
  if (score < kHopelessScore && !ends_waits) return false;
  return std::nullopt;
}

bool ProducerTuner::HasEndedWaits() const {
  return Median(recent_.Waits()) <= kPartOfWait * Median(before_.Waits()) &&
         RankSumScore(recent_.Waits(), before_.Waits()) >= kSignificantScore;
}

int ProducerTuner::PauseAfterFailure() {
  // A trial that began at once could show only a large gain. If it may have
  // gained something, the next one is compared with more.
  if (!before_.complete() &&
      Median(recent_.Rates()) > Median(before_.Rates())) {
    return kPeriodsToDecide;
  }
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  return pause_;
}

bool ProducerTuner::OnPeriod(const Period& period) {
  if (period.micros <= 0) return false;
  ++periods_;
  periods_to_trial_ = std::max(periods_to_trial_ - 1, 0);
  // Steps that take what a buffer held before could not go on so.
  const double rate =
      static_cast<double>(std::min(period.put, period.taken)) / period.micros;
  const double waits =
      static_cast<double>(period.take_wait_micros) / period.micros;
  const double idle =
      static_cast<double>(period.put_wait_micros) / period.micros;
  const double idle_cores =
      cores_ - static_cast<double>(period.cpu_micros) / period.micros;
  const bool is_evidence = IsEvidence(period);
  if (is_evidence) recent_.Add({rate, waits, idle_cores});
  if (on_trial_) {
    if (!is_evidence) return false;
    const std::optional<bool> worth_it = IsWorthIt();
    if (!worth_it.has_value()) return false;
    on_trial_ = false;
    if (!*worth_it) {
      periods_to_trial_ = PauseAfterFailure();
      return Change(producers_ - 1);
    }
    pause_ = 0;
  }
  idle_periods_ = idle > 1 + kSpare ? idle_periods_ + 1 : 0;
  if (waits > kToleratedWait) {
    if (producers_ == most_ || periods_to_trial_ > 0 ||
        !ShouldTry(waits, idle)) {
      return false;
    }
    on_trial_ = true;
    before_ = recent_;
    return Change(producers_ + 1);
  }
  if (producers_ == 1 || idle_periods_ < kIdlePeriods) return false;
  return Change(producers_ - 1);
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
