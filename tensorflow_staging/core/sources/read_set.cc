// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/read_set.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/save_moment.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

bool ReadSet::IsUnusedAt(int64_t moment) const {
  mutex_lock l(mu_);
  return state() != State::kUsed || used_at_ >= moment;
}

bool ReadSet::empty() const {
  mutex_lock l(mu_);
  return entries_.empty();
}

bool ReadSet::IsBefore(const ReadSet& other) const {
  HeldEntries theirs;
  other.ForEach([&theirs](const HeldEntry& entry) { theirs.push_back(entry); });
  bool is_before = false;
  ForEach([&theirs, &is_before](const HeldEntry& entry) {
    is_before |= absl::c_any_of(theirs, [&entry](const HeldEntry& other) {
      return other.source == entry.source && entry.number < other.number;
    });
  });
  return is_before;
}

bool ReadSet::Add(HeldEntry entry) {
  mutex_lock l(mu_);
  if (state() == State::kStale) return false;
  entries_.push_back(std::move(entry));
  return true;
}

std::shared_ptr<ReadSet> ReadSet::MakeUsed() {
  auto used = std::make_shared<ReadSet>();
  used->UseBetweenRollBacks();
  return used;
}

bool ReadSet::Use() {
  tf_shared_lock between_roll_backs(RollBack::mu_);
  return UseBetweenRollBacks();
}

void ReadSet::ForgetUsed() {
  HeldEntries used;  // Destroyed without locks.
  {
    mutex_lock l(mu_);
    if (state() == State::kUsed) used.swap(entries_);
  }
  const Source* pruned = nullptr;
  for (const HeldEntry& entry : used) {
    if (entry.source.get() == pruned) continue;
    entry.source->Prune();
    pruned = entry.source.get();
  }
}

bool ReadSet::UseBetweenRollBacks() {
  mutex_lock l(mu_);
  if (state() == State::kStale) return false;
  // With the lock: a save sees either that it is held, and then this moment is
  // that of the save or a later one, or when it was used.
  if (state() == State::kHeld) used_at_ = SaveMoment::Now();
  state_.store(State::kUsed, std::memory_order_release);
  return true;
}

bool ReadSet::MakeStale(std::vector<HeldEntry>* entries) {
  mutex_lock l(mu_);
  if (state() == State::kUsed) return false;
  state_.store(State::kStale, std::memory_order_release);
  absl::c_move(entries_, std::back_inserter(*entries));
  entries_.clear();
  return true;
}

}  // namespace staging
}  // namespace tensorflow
