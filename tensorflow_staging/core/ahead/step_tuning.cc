// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/step_tuning.h"

#include <chrono>  // NOLINT

#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

int64_t StepTuning::Begin(TensorBuffer* buffer) {
  mutex_lock l(mu_);
  if (capacity_.has_value()) buffer->GoOnWith(*capacity_);
  tuning_.Restart();
  return ++stages_;
}

void StepTuning::OnRecord(int64_t stage, int64_t records,
                          const TensorBuffer& buffer) {
  mutex_lock l(mu_);
  if (stage != stages_) return;
  capacity_ = buffer.FoundCapacity();
  if (!tunes_threads_) return;
  tuning_.OnRecord(std::chrono::steady_clock::now(), records,
                   [&buffer](TuningPeriods::Totals* totals) {
                     *totals = TuningPeriods::TotalsOf(buffer.GetStats());
                     return OkStatus();
                   });
  const int threads = tuning_.producers();
  if (!tuning_.settled() || threads == reported_) return;
  reported_ = threads;
  LOG(INFO) << "Stage '" << buffer.name() << "' has settled on " << threads
            << " producer" << (threads == 1 ? "" : "s") << " (of up to "
            << TuningPeriods::MostProducers() << ").";
}

int StepTuning::threads() const {
  mutex_lock l(mu_);
  return tuning_.producers();
}

bool StepTuning::settled() const {
  mutex_lock l(mu_);
  return tunes_threads_ && tuning_.settled();
}

}  // namespace staging
}  // namespace tensorflow
