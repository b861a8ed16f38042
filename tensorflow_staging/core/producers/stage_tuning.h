// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_STAGE_TUNING_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_STAGE_TUNING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/producers/region_runs.h"
#include "tensorflow_staging/core/producers/tuning_periods.h"

namespace tensorflow {
namespace staging {

// What the stages of one region have found: how many producers they need, and the
// capacity of their buffers, where these choose it. A session has one stage of a
// region. In a function, each iterator has a stage of its own, most often one after
// the other, as in epochs: each goes on with what the one before has found. Of
// several, the latest tunes. Thread-safe.
class StageTuning {
 public:
  // `tunes_threads` is whether to choose how many producers a stage has.
  explicit StageTuning(bool tunes_threads) : tunes_threads_(tunes_threads) {}

  bool tunes_threads() const { return tunes_threads_; }

  // Another stage begins. Returns its number.
  int64_t Begin() TF_LOCKS_EXCLUDED(mu_);
  // The first producer of stage `number`, which is called `name`, has put a record,
  // and all of them `records`.
  void OnRecord(int64_t number, const std::string& name, int64_t records,
                RegionRuns* runs) TF_LOCKS_EXCLUDED(mu_);

  // How many producers a stage is to have, if that is chosen, and whether that has
  // settled.
  int threads() const TF_LOCKS_EXCLUDED(mu_);
  bool settled() const TF_LOCKS_EXCLUDED(mu_);

  // `buffer`, which has no record yet, goes on with the capacity of the stage before.
  void GiveCapacityTo(TensorBuffer* buffer) const TF_LOCKS_EXCLUDED(mu_);

 private:
  const bool tunes_threads_;

  mutable mutex mu_;
  TuningPeriods periods_ TF_GUARDED_BY(mu_);
  int64_t stages_ TF_GUARDED_BY(mu_) = 0;
  // What was logged last.
  int reported_ TF_GUARDED_BY(mu_) = 0;
  // Nothing before the first record.
  std::optional<Room> capacity_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_STAGE_TUNING_H_
