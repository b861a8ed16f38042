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
  if (failed->reads != nullptr && !errors::IsOutOfRange(failed->status)) {
    failed->reads->Use();
    due->Destroy({{}, std::move(failed->reads)});
  } else {
    due->GiveBack(std::move(failed->reads));
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
  RunEnd* first = nullptr;
  for (RunEnd& run : failed_) {
    if (run.reads == nullptr || run.reads->is_stale()) continue;
    if (first == nullptr || run.reads->IsBefore(*first->reads)) first = &run;
  }
  if (first == nullptr) return std::nullopt;
  RunEnd taken = *first;
  first->reads = nullptr;
  return taken;
}

void RunGate::GiveBackFailed(DueCallbacks* due) {
  for (RunEnd& run : failed_) {
    due->GiveBack(std::exchange(run.reads, nullptr));
  }
}

void RunGate::ForgetFailed(DueCallbacks* due) {
  GiveBackFailed(due);
  failed_.clear();
}

}  // namespace staging
}  // namespace tensorflow
