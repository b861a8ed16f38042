// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/producer_tuning.h"

#include <utility>

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kShortestMicros = 200 * 1000;
constexpr int kFewestRecords = 4;

}  // namespace

bool ProducerTuning::OnRecord(Time now, int64_t records,
                              absl::FunctionRef<Status(Totals*)> read) {
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(
                             now.time_since_epoch())
                             .count();
  const int64_t began = begin_.has_value() ? begin_->micros : 0;
  if (!tuner_.has_value() || micros - began < kShortestMicros ||
      records < records_ + kFewestRecords) {
    return false;
  }
  Totals period;
  if (!read(&period).ok()) {
    tuner_.reset();
    return false;
  }
  period.micros = micros;
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
