// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/run_order.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"

namespace tensorflow {
namespace staging {

void RunOrder::WhenChanged(std::function<void()> on_change) {
  mutex_lock l(mu_);
  on_change_ = std::move(on_change);
}

bool RunOrder::MayBegin() const {
  mutex_lock l(mu_);
  return absl::c_none_of(runs_, [](const auto& run) {
    return run.second.reads || run.second.is_abandoned;
  });
}

void RunOrder::Begin(uint64_t producer) {
  mutex_lock l(mu_);
  runs_[++last_].producer = producer;
}

bool RunOrder::SetRun(uint64_t producer, std::shared_ptr<StagedRun> run) {
  mutex_lock l(mu_);
  const auto found = Find(producer);
  if (found == runs_.end() || found->second.is_abandoned) return false;
  found->second.run = std::move(run);
  return true;
}

void RunOrder::EndReads(uint64_t producer) {
  std::function<void()> on_change;
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found == runs_.end() || !found->second.reads) return;
    found->second.reads = false;
    on_change = on_change_;
  }
  if (on_change != nullptr) on_change();
}

void RunOrder::Put(uint64_t producer, PutRecord put) {
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found != runs_.end()) {
      found->second.put = std::move(put);
      put = nullptr;
    }
  }
  if (put == nullptr) {
    CallPuts();
  } else {
    // No run of a producer puts it.
    std::move(put)();
  }
}

void RunOrder::AwaitTurn(uint64_t producer) {
  mutex_lock l(mu_);
  while (true) {
    const auto found = Find(producer);
    if (found == runs_.end() || found->second.has_put || HasTurn(found)) return;
    changed_.Wait(&mu_);
  }
}

void RunOrder::AbandonLater(uint64_t producer) {
  std::vector<std::shared_ptr<StagedRun>> later;
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found != runs_.end()) later = Mark(found);
  }
  for (const auto& run : later) run->Abandon();
}

std::vector<std::shared_ptr<StagedRun>> RunOrder::Mark(Runs::iterator from) {
  std::vector<std::shared_ptr<StagedRun>> later;
  from->second.is_abandoned = true;
  for (auto run = std::next(from); run != runs_.end(); ++run) {
    run->second.is_abandoned = true;
    if (run->second.run != nullptr) later.push_back(run->second.run);
  }
  return later;
}

void RunOrder::End(uint64_t producer) {
  std::function<void()> on_change;
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found == runs_.end()) return;
    runs_.erase(found);
    changed_.NotifyAll();
    on_change = on_change_;
  }
  CallPuts();
  if (on_change != nullptr) on_change();
}

void RunOrder::Release() {
  {
    mutex_lock l(mu_);
    is_released_ = true;
    changed_.NotifyAll();
  }
  CallPuts();
}

RunOrder::Runs::iterator RunOrder::Find(uint64_t producer) {
  return absl::c_find_if(runs_, [producer](const auto& run) {
    return run.second.producer == producer;
  });
}

bool RunOrder::HasTurn(Runs::const_iterator run) const {
  if (is_released_) return true;
  for (auto before = runs_.begin(); before != run; ++before) {
    if (!before->second.has_put) return false;
  }
  return true;
}

void RunOrder::CallPuts() {
  while (true) {
    PutRecord put;
    int64_t number = 0;
    std::vector<std::shared_ptr<StagedRun>> later;
    {
      mutex_lock l(mu_);
      const auto next = absl::c_find_if(
          runs_, [](const auto& run) { return run.second.put != nullptr; });
      if (next == runs_.end() || !HasTurn(next)) return;
      if (next->second.run != nullptr && next->second.run->IsStale()) {
        later = Mark(next);
      }
      number = next->first;
      put = std::move(next->second.put);
      next->second.put = nullptr;
    }
    for (const auto& run : later) run->Abandon();
    std::move(put)();
    mutex_lock l(mu_);
    // Unless the run has ended since.
    const auto called = runs_.find(number);
    if (called != runs_.end()) called->second.has_put = true;
    changed_.NotifyAll();
  }
}

}  // namespace staging
}  // namespace tensorflow
