// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

void RunGate::AdmitWaiting(DueCallbacks* due) {
  while (!waiting_.empty()) {
    Run run = waiting_.RemoveOldest();
    Admit(run.producer);
    *run.admitted_at = Source::Now();
    due->Add(std::move(run.done), OkStatus());
  }
}

void RunGate::EndWaiting(const Status& status, DueCallbacks* due) {
  while (!waiting_.empty()) due->Add(waiting_.RemoveOldest().done, status);
}

void RunGate::Admit(uint64_t producer) {
  ++active_;
  ++active_by_producer_[producer];
  if (keeps_elements_) return;
  for (RunEnd& run : failed_) {
    if (run.producer == producer) run.unused = {};
  }
}

RunEnd RunGate::Leave(RunEnd end) {
  --active_;
  --active_by_producer_[end.producer];
  if (end.has_put || end.is_stale) return end;
  failed_.push_back(std::move(end));
  RunEnd forgotten;
  if (failed_.size() > kMaxThreads) {
    forgotten = std::move(failed_.front());
    failed_.pop_front();
  }
  return forgotten;
}

bool RunGate::IsActive(uint64_t producer) const {
  const auto active = active_by_producer_.find(producer);
  return active != active_by_producer_.end() && active->second > 0;
}

void RunGate::Release(const void* step_container) {
  const auto it = std::find(holders_.begin(), holders_.end(), step_container);
  if (it != holders_.end()) holders_.erase(it);
}

bool RunGate::IsHeldBy(const void* step_container) const {
  return step_container != nullptr &&
         std::find(holders_.begin(), holders_.end(), step_container) !=
             holders_.end();
}

std::optional<RunGate::End> RunGate::FindEnd() const {
  End end;
  for (const RunEnd& run : failed_) {
    if (run.is_undone || run.reads.IsStale()) continue;
    end.reads.Add(run.reads);
    end.producer = run.producer;
  }
  if (!failed_.empty() && !end.producer.has_value()) return std::nullopt;
  return end;
}

UnusedReads RunGate::TakeUnused(bool undo, bool only_stale) {
  UnusedReads all;
  for (RunEnd& run : failed_) {
    if (only_stale && !run.reads.IsStale()) continue;
    UnusedReads unused = std::exchange(run.unused, {});
    run.is_undone |=
        undo && (!unused.elements.empty() || unused.taken != nullptr);
    absl::c_move(unused.elements, std::back_inserter(all.elements));
    if (unused.taken == nullptr) continue;
    if (all.taken == nullptr) {
      all.taken = std::move(unused.taken);
    } else {
      absl::c_move(*unused.taken, std::back_inserter(*all.taken));
    }
  }
  return all;
}

}  // namespace staging
}  // namespace tensorflow
