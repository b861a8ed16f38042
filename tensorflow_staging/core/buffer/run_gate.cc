// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/run_gate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// gRPC cuts a message after 3072 bytes, in which others may be before that of the run.
constexpr size_t kKeptByServers = 2048;

}  // namespace

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

void RunGate::Admit(ProducerId producer, DueCallbacks* due) {
  ++active_;
  SourceRuns& source = sources_[producer.source];
  ++source.active;
  source.has_begun = true;
  if (!producer.is_known()) return;
  for (auto failed = failed_.begin(); failed != failed_.end();) {
    if (failed->producer.number != producer.number) {
      ++failed;
      continue;
    }
    if (failed->is_open() && !failed->is_end_of_data) {
      // The producer goes on without a report.
      failed->is_ignored = true;
      ++failed;
      continue;
    }
    due->GiveBack(std::move(failed->reads));
    failed = failed_.erase(failed);
  }
}

void RunGate::Leave(RunEnd end, DueCallbacks* due) {
  --active_;
  --sources_[end.producer.source].active;
  if (end.is_over) {
    due->Destroy({{}, std::move(end.reads)});
    return;
  }
  failed_.push_back({end.producer, end.status, errors::IsOutOfRange(end.status),
                     std::move(end.reads)});
  if (failed_.size() <= kMaxThreads) return;
  due->GiveBack(std::move(failed_.front().reads));
  failed_.pop_front();
}

bool RunGate::IsEarlierActive(ProducerId producer) const {
  if (producer.is_ordered) return false;
  const auto source = sources_.find(producer.source);
  return source != sources_.end() && source->second.active > 0;
}

void RunGate::PassFailed(ProducerId producer,
                         const std::shared_ptr<ReadSet>& reads,
                         DueCallbacks* due) {
  std::vector<Failed*> passed;
  for (Failed& failed : failed_) {
    const bool is_of_same = producer.is_ordered
                                ? failed.producer.source == producer.source
                                : failed.producer.number == producer.number;
    if (!failed.is_open() || failed.is_end_of_data || !is_of_same ||
        (!producer.is_known() && !failed.reads->empty() &&
         !failed.reads->IsBefore(*reads)) ||
        // While producers stop, a run may fail before an earlier one puts.
        reads->IsBefore(*failed.reads)) {
      continue;
    }
    passed.push_back(&failed);
  }
  // Only now, because `reads` is compared as it is.
  for (Failed* failed : passed) {
    failed->is_passed = true;
    due->HandOver(std::exchange(failed->reads, nullptr), reads);
  }
}

template <typename Predicate>
RunGate::Failed* RunGate::FirstOpen(Predicate predicate) {
  Failed* first = nullptr;
  for (Failed& failed : failed_) {
    if (!failed.is_open() || !predicate(failed)) continue;
    if (first == nullptr || failed.reads->IsBefore(*first->reads)) {
      first = &failed;
    }
  }
  return first;
}

std::optional<RunGate::Report> RunGate::TakeReport(const Status& cause,
                                                   ProducerId producer) {
  if (!producer.is_known()) return TakeReportOfAny(cause);
  if (cause.ok() && HasOtherSourceMore(producer)) return std::nullopt;
  return TakeReportOf(producer);
}

bool RunGate::HasOtherSourceMore(ProducerId producer) const {
  return absl::c_any_of(sources_, [this, producer](const auto& other) {
    return other.second.has_begun && other.first != producer.source &&
           absl::c_none_of(failed_, [&other](const Failed& failed) {
             return failed.producer.source == other.first &&
                    failed.is_end_of_data && failed.is_open();
           });
  });
}

std::optional<RunGate::Report> RunGate::TakeReportOf(ProducerId producer) {
  // Its last run comes last.
  const auto failed = std::find_if(
      failed_.rbegin(), failed_.rend(), [producer](const Failed& failed) {
        return failed.producer.number == producer.number;
      });
  if (failed == failed_.rend()) return Report{nullptr, producer};
  if (!failed->is_open()) return std::nullopt;
  return Report{std::exchange(failed->reads, nullptr), failed->producer};
}

std::optional<RunGate::Report> RunGate::TakeReportOfAny(const Status& cause) {
  // The producer may have added to the message of the run, and so may the runtime
  // of a server.
  const auto is_reported = [&cause](const Failed& failed) {
    return cause.ok() ? failed.is_end_of_data
                      : absl::StrContains(
                            cause.message(),
                            failed.status.message().substr(0, kKeptByServers));
  };
  Failed* first = FirstOpen(is_reported);
  if (first == nullptr) {
    const auto passed = absl::c_find_if(failed_, [&](const Failed& failed) {
      return failed.is_passed && is_reported(failed);
    });
    if (passed != failed_.end()) {
      const ProducerId producer = passed->producer;
      failed_.erase(passed);
      return Report{nullptr, producer};
    }
    const auto rolled_back =
        absl::c_find_if(failed_, [&](const Failed& failed) {
          return !failed.is_open() && is_reported(failed);
        });
    if (rolled_back != failed_.end()) {
      // A producer that is not told apart from others reports once.
      if (!rolled_back->producer.is_known()) failed_.erase(rolled_back);
      return std::nullopt;
    }
    // The stage may take another error for the end of its data.
    first = FirstOpen([](const Failed&) { return true; });
  }
  if (first == nullptr) return Report();
  return Report{std::exchange(first->reads, nullptr), first->producer};
}

std::shared_ptr<ReadSet> RunGate::TakeEnd() {
  Failed* const first =
      FirstOpen([](const Failed& failed) { return failed.is_end_of_data; });
  return first == nullptr ? nullptr : std::exchange(first->reads, nullptr);
}

void RunGate::PassIgnored(const std::shared_ptr<ReadSet>& end,
                          DueCallbacks* due) {
  for (Failed& failed : failed_) {
    if (!failed.is_ignored || !failed.is_open()) continue;
    failed.is_passed = true;
    due->HandOver(std::exchange(failed.reads, nullptr), end);
  }
}

void RunGate::GiveBackFailed(DueCallbacks* due, bool keeps_ends) {
  for (Failed& failed : failed_) {
    if (keeps_ends && failed.is_end_of_data) continue;
    due->GiveBack(std::exchange(failed.reads, nullptr));
  }
}

void RunGate::ForgetFailed(DueCallbacks* due) {
  GiveBackFailed(due);
  failed_.clear();
  for (auto& [number, source] : sources_) source.has_begun = false;
}

}  // namespace staging
}  // namespace tensorflow
