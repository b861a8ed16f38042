// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_TUNING_PERIODS_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_TUNING_PERIODS_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <optional>

#include "tensorflow/core/platform/statusor.h"
#include "tensorflow_staging/core/producers/producer_tuner.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"

namespace tensorflow {
namespace staging {

// Adapts the number of producers of a stage to its load: divides the time of the
// stage into the periods of a ProducerTuner. Not thread-safe.
class TuningPeriods {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // What has happened until now.
  using Totals = ProducerTuner::Period;

  // How many producers a stage of this process may have.
  static int MostProducers();
  // What a stage and this process have done until now, without the time.
  static Totals TotalsOf(const BufferStats& stats);

  // For a stage of this process.
  TuningPeriods();
  // See ProducerTuner.
  TuningPeriods(int most, int cores)
      : tuner_(std::in_place, most, cores), producers_(tuner_->producers()) {}

  // Whether the period ends with a record of the producer, always the same, of which
  // the stage has put `records` in all: the other producers have put about as many.
  // It then has had enough records, and has lasted long enough that chance does not
  // decide.
  bool IsDue(Time now, int64_t records) const;
  // Ends the period with the totals, but for their time. Returns whether the number
  // changes. It never does after an error in place of them, which the closing
  // session may cause.
  bool EndPeriod(Time now, int64_t records, const StatusOr<Totals>& totals);

  // From here on another stage, whose totals begin at 0, goes on with what was
  // found.
  void Restart();

  int producers() const { return producers_; }
  // Whether the number has settled.
  bool settled() const { return settled_; }

 private:
  // Nothing once the number stays as it is.
  std::optional<ProducerTuner> tuner_;
  int producers_;
  bool settled_ = false;
  // When the period began, and how many records there were; nothing in the first
  // one, whose beginning is not known.
  std::optional<Totals> begin_;
  int64_t records_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_TUNING_PERIODS_H_
