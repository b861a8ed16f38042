// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

void RunGate::AdmitWaiting(DueCallbacks* due) {
  while (!waiting_.empty()) {
    Run run = waiting_.RemoveOldest();
    Admit(run.producer, due);
    due->Add(std::move(run.done), OkStatus());
  }
}

void RunGate::EndWaiting(const Status& status, DueCallbacks* due) {
  while (!waiting_.empty()) due->Add(waiting_.RemoveOldest().done, status);
}

void RunGate::Admit(uint64_t producer, DueCallbacks* due) {
  ++active_;
  ++active_by_producer_[producer];
  if (failed_.empty()) return;
  const auto failed = absl::c_find_if(failed_, [producer](const RunEnd& run) {
    return run.producer == producer;
  });
  if (failed == failed_.end()) return;
  if (errors::IsOutOfRange(failed->status)) {
    due->GiveBack(std::move(failed->reads));
  } else {
    failed->reads->Use();
    due->Destroy({{}, std::move(failed->reads)});
  }
  failed_.erase(failed);
}

void RunGate::Leave(RunEnd end, DueCallbacks* due) {
  --active_;
  --active_by_producer_[end.producer];
  if (end.is_over) {
    due->Destroy({{}, std::move(end.reads)});
  } else {
    failed_.push_back(std::move(end));
  }
}

bool RunGate::IsActive(uint64_t producer) const {
  const auto active = active_by_producer_.find(producer);
  return active != active_by_producer_.end() && active->second > 0;
}

std::optional<RunEnd> RunGate::TakeFailed() {
  const auto failed = absl::c_find_if(failed_, [](const RunEnd& run) {
    return !run.reads->is_stale();
  });
  if (failed == failed_.end()) return std::nullopt;
  RunEnd end = std::move(*failed);
  failed_.erase(failed);
  return end;
}

void RunGate::GiveBackFailed(DueCallbacks* due) {
  for (RunEnd& run : failed_) due->GiveBack(std::move(run.reads));
  failed_.clear();
}

}  // namespace staging
}  // namespace tensorflow
