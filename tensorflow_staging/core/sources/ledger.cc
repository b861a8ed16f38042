// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/ledger.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/save_moment.h"

namespace tensorflow {
namespace staging {

int64_t Ledger::Add(std::shared_ptr<const Outcome> outcome) {
  entries_.push_back({std::move(outcome), nullptr});
  ++num_back_;
  return end() - 1;
}

int64_t Ledger::FirstBack() const {
  if (num_back_ == 0) return end();
  const auto found = absl::c_find_if(
      entries_, [](const Entry& entry) { return entry.holder == nullptr; });
  return first_ + (found - entries_.begin());
}

std::shared_ptr<ReadSet> Ledger::SetHolder(int64_t number,
                                           std::shared_ptr<ReadSet> holder) {
  Entry& entry = (*this)[number];
  if (entry.holder == nullptr) --num_back_;
  if (holder == nullptr) ++num_back_;
  entry.holder.swap(holder);
  return holder;
}

Outcomes Ledger::UnusedAt(int64_t moment) const {
  Outcomes unused;
  for (const Entry& entry : entries_) {
    if (entry.holder == nullptr || entry.holder->IsUnusedAt(moment)) {
      unused.push_back(entry.outcome);
    }
  }
  return unused;
}

bool Ledger::HasBeenUsed() const {
  return has_pruned_ || absl::c_any_of(entries_, [](const Entry& entry) {
           return entry.outcome->status.ok() && entry.holder != nullptr &&
                  entry.holder->is_used();
         });
}

void Ledger::Prune(Removed* removed) {
  while (!entries_.empty()) {
    Entry& oldest = entries_.front();
    if (oldest.holder == nullptr || !oldest.holder->is_used() ||
        SaveMoment::MayNeed(*oldest.holder)) {
      return;
    }
    has_pruned_ |= oldest.outcome->status.ok();
    removed->push_back(std::move(oldest));
    entries_.pop_front();
    ++first_;
  }
}

void Ledger::RemoveFrom(int64_t number, Removed* removed) {
  while (end() > number) {
    if (entries_.back().holder == nullptr) --num_back_;
    removed->push_back(std::move(entries_.back()));
    entries_.pop_back();
  }
}

std::deque<Ledger::Entry> Ledger::Clear() {
  first_ = end();
  num_back_ = 0;
  has_pruned_ = false;
  return std::exchange(entries_, {});
}

}  // namespace staging
}  // namespace tensorflow
