// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/stage_tuning.h"

#include <chrono>  // NOLINT

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow {
namespace staging {

int64_t StageTuning::Begin() {
  mutex_lock l(mu_);
  periods_.Restart();
  return ++stages_;
}

void StageTuning::OnRecord(int64_t number, const std::string& name,
                           int64_t records, RegionRuns* runs) {
  const std::optional<Room> capacity = runs->FoundCapacity();
  const auto now = std::chrono::steady_clock::now();
  {
    mutex_lock l(mu_);
    if (number != stages_) return;
    if (capacity.has_value()) capacity_ = capacity;
    if (!tunes_threads_ || !periods_.IsDue(now, records)) return;
  }
  BufferStats stats;
  const Status read = runs->ReadStats(&stats);
  // Of an OK status, absl makes no StatusOr: it logs an error each time.
  using Totals = StatusOr<TuningPeriods::Totals>;
  const Totals totals =
      read.ok() ? Totals(TuningPeriods::TotalsOf(stats)) : Totals(read);
  int settled_on = 0;
  {
    mutex_lock l(mu_);
    if (number != stages_) return;
    periods_.EndPeriod(now, records, totals);
    const int threads = periods_.producers();
    if (!periods_.settled() || threads == reported_) return;
    settled_on = reported_ = threads;
  }
  LOG(INFO) << absl::StrCat("Stage '", name, "' has settled on ", settled_on,
                            " producer", settled_on == 1 ? "" : "s",
                            " (of up to ", TuningPeriods::MostProducers(),
                            ").");
}

int StageTuning::threads() const {
  mutex_lock l(mu_);
  return periods_.producers();
}

bool StageTuning::settled() const {
  mutex_lock l(mu_);
  return tunes_threads_ && periods_.settled();
}

void StageTuning::GiveCapacityTo(TensorBuffer* buffer) const {
  std::optional<Room> capacity;
  {
    mutex_lock l(mu_);
    capacity = capacity_;
  }
  if (capacity.has_value()) buffer->GoOnWith(*capacity);
}

}  // namespace staging
}  // namespace tensorflow
