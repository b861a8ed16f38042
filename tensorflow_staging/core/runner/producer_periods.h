// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_PERIODS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_PERIODS_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <optional>

#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/runner/producer_tuner.h"

namespace tensorflow {
namespace staging {

// Divides the time of a stage into the periods of a ProducerTuner, by the
// totals in the statistics of the stage's buffer. Not thread-safe.
class ProducerPeriods {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Returns whether the period may end: producers have put enough records,
  // `records` in all, since it began, and it has lasted long enough, that
  // chance does not decide. To be asked when one of them, always the same, has
  // put a record: then the others have put about as many.
  bool MayEnd(Time now, int64_t records) const;

  // Ends the period, and begins the next one. `cpu_micros` is the CPU time that
  // the process has taken so far. Returns what happened, or nothing for the
  // period before the first call, whose beginning is not known.
  std::optional<ProducerTuner::Period> End(Time now, int64_t records,
                                           const BufferStats& stats,
                                           int64_t cpu_micros);

 private:
  // The totals when the period began.
  struct Totals {
    Time time;
    int64_t records = 0;
    int64_t put = 0;
    int64_t taken = 0;
    int64_t take_wait_micros = 0;
    int64_t put_wait_micros = 0;
    int64_t cpu_micros = 0;
  };

  std::optional<Totals> begin_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_PRODUCER_PERIODS_H_
