// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/tuning_periods.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env_time.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kShortestMicros = 200 * 1000;
constexpr int kFewestRecords = 4;

// Producers that compute gain nothing beyond the number of cores. Those that
// wait, as for storage, may; this many let a step that takes records 32 times
// as fast as one producer makes them go on without waiting, and twice that.
constexpr int kMostWaitingProducers = 64;

// Returns the CPU time that all threads of this process have taken.
int64_t CpuMicros() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * EnvTime::kSecondsToMicros +
         time.tv_nsec / EnvTime::kMicrosToNanos;
}

int64_t MicrosOf(TuningPeriods::Time time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             time.time_since_epoch())
      .count();
}

}  // namespace

int TuningPeriods::MostProducers() {
  return std::max(port::NumSchedulableCPUs(), kMostWaitingProducers);
}

TuningPeriods::Totals TuningPeriods::TotalsOf(const BufferStats& stats) {
  return {/*micros=*/0,
          stats.put(),
          stats.taken(),
          stats.take_waits().total_micros(),
          stats.put_waits().total_micros(),
          CpuMicros()};
}

TuningPeriods::TuningPeriods()
    : TuningPeriods(MostProducers(), port::NumSchedulableCPUs()) {}

void TuningPeriods::Restart() {
  begin_.reset();
  records_ = 0;
}

bool TuningPeriods::IsDue(Time now, int64_t records) const {
  const int64_t began = begin_.has_value() ? begin_->micros : 0;
  return tuner_.has_value() && MicrosOf(now) - began >= kShortestMicros &&
         records >= records_ + kFewestRecords;
}

bool TuningPeriods::EndPeriod(Time now, int64_t records,
                              const StatusOr<Totals>& totals) {
  if (!totals.ok()) {
    tuner_.reset();
    return false;
  }
  Totals period = *totals;
  period.micros = MicrosOf(now);
  records_ = records;
  const std::optional<Totals> begin = std::exchange(begin_, period);
  if (!begin.has_value()) return false;
  period.micros -= begin->micros;
  period.put -= begin->put;
  period.taken -= begin->taken;
  period.take_wait_micros -= begin->take_wait_micros;
  period.put_wait_micros -= begin->put_wait_micros;
  period.cpu_micros -= begin->cpu_micros;
  const bool changes = tuner_->OnPeriod(period);
  producers_ = tuner_->producers();
  settled_ = tuner_->settled();
  return changes;
}

}  // namespace staging
}  // namespace tensorflow
