// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_STEP_TUNING_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_STEP_TUNING_H_

#include <cstdint>
#include <optional>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/capacity_tuner.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/runner/tuning_periods.h"

namespace tensorflow {
namespace staging {

// What the stages of a step have found: the capacity of their buffers, where
// these choose it, and how many threads they need. Each iterator has a stage of
// its own, most often one after the other, as in epochs: each goes on with what
// the one before has found. Of several, the latest tunes. Thread-safe.
class StepTuning {
 public:
  // `tunes_threads` is whether to choose how many threads a stage has.
  explicit StepTuning(bool tunes_threads) : tunes_threads_(tunes_threads) {}

  bool tunes_threads() const { return tunes_threads_; }

  // Another stage begins, whose `buffer` has no record yet. Returns its number.
  int64_t Begin(TensorBuffer* buffer) TF_LOCKS_EXCLUDED(mu_);

  // Notes that the first thread of `stage` has put a record, and all its threads
  // so many `records` into `buffer`.
  void OnRecord(int64_t stage, int64_t records, const TensorBuffer& buffer)
      TF_LOCKS_EXCLUDED(mu_);

  // How many threads a stage is to have, if that is chosen, and whether that has
  // settled.
  int threads() const TF_LOCKS_EXCLUDED(mu_);
  bool settled() const TF_LOCKS_EXCLUDED(mu_);

 private:
  const bool tunes_threads_;

  mutable mutex mu_;
  // Nothing before the first record.
  std::optional<CapacityTuner> capacity_ TF_GUARDED_BY(mu_);
  TuningPeriods tuning_ TF_GUARDED_BY(mu_);
  int64_t stages_ TF_GUARDED_BY(mu_) = 0;
  // What was logged last.
  int reported_ TF_GUARDED_BY(mu_) = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_STEP_TUNING_H_
