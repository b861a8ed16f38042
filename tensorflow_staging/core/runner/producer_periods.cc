// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_periods.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr std::chrono::milliseconds kShortestPeriod(200);
constexpr int kFewestRecords = 4;

}  // namespace

bool ProducerPeriods::MayEnd(Time now, int64_t records) const {
  const Totals begin = begin_.value_or(Totals());
  return now - begin.time >= kShortestPeriod &&
         records >= begin.records + kFewestRecords;
}

std::optional<ProducerTuner::Period> ProducerPeriods::End(
    Time now, int64_t records, const BufferStats& stats, int64_t cpu_micros) {
  const Totals end = {now,
                      records,
                      stats.put(),
                      stats.taken(),
                      stats.take_waits().total_micros(),
                      stats.put_waits().total_micros(),
                      cpu_micros};
  const std::optional<Totals> begin = begin_;
  begin_ = end;
  if (!begin.has_value()) return std::nullopt;
  ProducerTuner::Period period;
  period.micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now - begin->time)
          .count();
  period.put = end.put - begin->put;
  period.taken = end.taken - begin->taken;
  period.take_wait_micros = end.take_wait_micros - begin->take_wait_micros;
  period.put_wait_micros = end.put_wait_micros - begin->put_wait_micros;
  period.cpu_micros = end.cpu_micros - begin->cpu_micros;
  return period;
}

}  // namespace staging
}  // namespace tensorflow
