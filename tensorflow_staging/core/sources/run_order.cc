// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/run_order.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/sources/roll_back.h"

namespace tensorflow {
namespace staging {
namespace {

void GiveBackAll(const std::vector<std::shared_ptr<ReadSet>>& abandoned) {
  for (const std::shared_ptr<ReadSet>& reads : abandoned) GiveBack(reads);
}

}  // namespace

bool RunOrder::MayBegin() const {
  return is_released_ || absl::c_none_of(runs_, [](const auto& run) {
           return run.second.is_reading || run.second.is_abandoned;
         });
}

void RunOrder::Begin(uint64_t producer) {
  mutex_lock l(mu_);
  while (!MayBegin()) changed_.Wait(&mu_);
  runs_[++last_].producer = producer;
}

void RunOrder::SetReads(uint64_t producer, std::shared_ptr<ReadSet> reads) {
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found == runs_.end()) return;
    found->second.reads = reads;
    if (!found->second.is_abandoned) return;
  }
  GiveBack(reads);
}

void RunOrder::EndReads(uint64_t producer) {
  mutex_lock l(mu_);
  const auto found = Find(producer);
  if (found == runs_.end() || !found->second.is_reading) return;
  found->second.is_reading = false;
  changed_.NotifyAll();
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
  while (!is_released_) {
    const auto found = Find(producer);
    if (found == runs_.end() || found->second.has_put || IsNext(found)) return;
    changed_.Wait(&mu_);
  }
}

void RunOrder::AbandonLater(uint64_t producer) {
  Abandoned later;
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found == runs_.end()) return;
    found->second.is_abandoned = true;
    Mark(std::next(found), &later);
  }
  GiveBackAll(later);
}

void RunOrder::Mark(Runs::iterator from, Abandoned* abandoned) {
  for (auto run = from; run != runs_.end(); ++run) {
    run->second.is_abandoned = true;
    if (run->second.reads != nullptr) abandoned->push_back(run->second.reads);
  }
}

void RunOrder::End(uint64_t producer) {
  {
    mutex_lock l(mu_);
    const auto found = Find(producer);
    if (found == runs_.end()) return;
    runs_.erase(found);
    changed_.NotifyAll();
  }
  CallPuts();
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

bool RunOrder::IsNext(Runs::const_iterator run) const {
  for (auto before = runs_.begin(); before != run; ++before) {
    if (!before->second.has_put) return false;
  }
  return true;
}

void RunOrder::CallPuts() {
  while (true) {
    PutRecord put;
    int64_t number = 0;
    Abandoned abandoned;
    {
      mutex_lock l(mu_);
      const auto next = absl::c_find_if(
          runs_, [](const auto& run) { return run.second.put != nullptr; });
      if (next == runs_.end()) return;
      const bool is_next = IsNext(next);
      if (!is_next && !is_released_) return;
      const std::shared_ptr<ReadSet>& reads = next->second.reads;
      if (!is_next) {
        // What comes from no iterator would be lost.
        if (reads != nullptr && !reads->empty()) Mark(next, &abandoned);
      } else if (reads != nullptr && reads->is_stale()) {
        next->second.is_abandoned = true;
        Mark(std::next(next), &abandoned);
      }
      number = next->first;
      put = std::exchange(next->second.put, nullptr);
    }
    GiveBackAll(abandoned);
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
