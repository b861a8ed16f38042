// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNS_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/buffer/room.h"
#include "tensorflow_staging/core/producers/region_runs.h"

namespace tensorflow {
namespace staging {

// The runs of a region outside of sessions: calls of a function that puts a record
// into a StepBuffer. Thread-safe.
class FunctionRuns : public RegionRuns {
 public:
  // Calls the function once.
  using RunRegion = std::function<Status(CancellationManager*)>;

  FunctionRuns(core::RefCountPtr<StepBuffer> buffer, RunRegion run_region);

  StepBuffer* buffer() const { return buffer_.get(); }

  // Cancels the calls in progress, and those to come.
  void Cancel();

  core::RefCountPtr<Stage> FindStage() const override;
  ProducerId IdOf(int source, uint64_t number) const override {
    return {/*source=*/1, number};
  }
  bool is_bounded() const override;
  bool MayBegin(int running) const override;
  Status Run(int source, const std::shared_ptr<StagedRun>& run,
             bool* has_put) override;
  RunOutcome OutcomeOf(const Status& error) const override;
  Status Close(int source, uint64_t number, const Status& cause) override;
  Status ReadStats(BufferStats* stats) override;
  std::optional<Room> FoundCapacity() const override {
    return buffer_->FoundCapacity();
  }

 private:
  const core::RefCountPtr<StepBuffer> buffer_;
  const RunRegion run_region_;
  // The parent of those of the runs, which each have one of their own: an error
  // cancels a run.
  CancellationManager cancellation_;
  std::atomic<bool> is_cancelled_{false};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_PRODUCERS_FUNCTION_RUNS_H_
