// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/producers/function_runs.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

FunctionRuns::FunctionRuns(core::RefCountPtr<StepBuffer> buffer,
                           RunRegion run_region)
    : buffer_(std::move(buffer)), run_region_(std::move(run_region)) {}

void FunctionRuns::Cancel() {
  is_cancelled_ = true;
  cancellation_.StartCancel();
}

core::RefCountPtr<Stage> FunctionRuns::FindStage() const {
  Stage* const stage = buffer_.get();
  return tsl::core::GetNewRef(stage);
}

bool FunctionRuns::is_bounded() const {
  return buffer_->allowed() != StepBuffer::kNoLimit;
}

bool FunctionRuns::MayBegin(int running) const {
  const int64_t allowed = buffer_->allowed();
  return allowed == StepBuffer::kNoLimit ||
         buffer_->TakenOrHeld() + running < allowed;
}

Status FunctionRuns::Run(int source, const std::shared_ptr<StagedRun>& run,
                         bool* has_put) {
  buffer_->BeginDraws(run->reads());
  CancellationManager cancellation(&cancellation_);
  // The parent may be cancelled while its child is being constructed, which the
  // child then does not notice.
  if (is_cancelled_) return errors::Cancelled("The stage is being stopped.");
  const ScopedStagedRun staged(&cancellation, run);
  *has_put = true;
  return run_region_(&cancellation);
}

RunOutcome FunctionRuns::OutcomeOf(const Status& error) const {
  return errors::IsOutOfRange(error) ? RunOutcome::kEndOfData
                                     : RunOutcome::kFailed;
}

Status FunctionRuns::Close(int source, uint64_t number, const Status& cause) {
  buffer_->Close(cause, IdOf(source, number));
  return OkStatus();
}

Status FunctionRuns::ReadStats(BufferStats* stats) {
  *stats = buffer_->GetStats();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
