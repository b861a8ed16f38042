// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_tuner.h"

#include <algorithm>

namespace tensorflow {
namespace staging {
namespace {

// The part of the time for which steps may wait without consequence.
constexpr double kToleratedWait = 0.02;
// By how much records must come faster with another producer, while steps still
// wait.
constexpr double kWorthwhileGain = 1.03;
// How many periods a trial may last, of which the pause of a program takes one.
constexpr int kTrialPeriods = 3;
// How much of a producer must be idle beyond a whole one before one goes, so
// that a small variation does not bring it back.
constexpr double kSpare = 0.3;
// In how many periods in a row. The pause of a program, for an evaluation or a
// checkpoint, is within one period, because no producer ends one meanwhile.
constexpr int kIdlePeriods = 2;
// The first pause between trials, and the longest.
constexpr int kFirstPause = 20;
constexpr int kLongestPause = 20 * 64;

}  // namespace

bool ProducerTuner::OnPeriod(const Period& period) {
  if (period.micros <= 0) return false;
  ++periods_;
  periods_to_trial_ = std::max(periods_to_trial_ - 1, 0);
  const double rate = static_cast<double>(period.taken) / period.micros;
  const double waits =
      static_cast<double>(period.take_wait_micros) / period.micros;
  const double idle =
      static_cast<double>(period.put_wait_micros) / period.micros;
  if (on_trial_) {
    // The first period still contains the change itself.
    if (periods_ < 2) return false;
    const bool waits_gone = waits <= kToleratedWait;
    // A step that does not wait any more, but takes longer, shares its cores
    // with the new producer. A pause of the program also lowers the rate.
    const bool faster =
        rate >= (waits_gone ? 1 : kWorthwhileGain) * rate_before_;
    if (!faster && waits_gone && periods_ < kTrialPeriods) return false;
    on_trial_ = false;
    if (!faster) {
      pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
      periods_to_trial_ = pause_;
      return Change(producers_ - 1);
    }
    pause_ = 0;
  }
  idle_periods_ = idle > 1 + kSpare ? idle_periods_ + 1 : 0;
  if (waits > kToleratedWait) {
    if (producers_ == most_ || periods_to_trial_ > 0) return false;
    on_trial_ = true;
    rate_before_ = rate;
    return Change(producers_ + 1);
  }
  if (producers_ == 1 || idle_periods_ < kIdlePeriods) return false;
  return Change(producers_ - 1);
}

bool ProducerTuner::Change(int producers) {
  producers_ = producers;
  periods_ = 0;
  idle_periods_ = 0;
  return true;
}

}  // namespace staging
}  // namespace tensorflow
