// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/roll_back.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/sources/source.h"

namespace tensorflow {
namespace staging {

mutex RollBack::mu_(LINKER_INITIALIZED);

void RollBack::GiveBack(const std::shared_ptr<ReadSet>& reads) {
  mutex_lock l(mu_);
  MakeStale(reads);
  Finish();
}

void RollBack::GiveBackElements(const std::shared_ptr<ReadSet>& reads) {
  mutex_lock l(mu_);
  MakeStale(reads);
  const std::shared_ptr<ReadSet> used = ReadSet::MakeUsed();
  for (const HeldEntry& entry : todo_) {
    if (!entry.outcome->status.ok()) entry.source->HandOver(entry, used);
  }
  Finish();
}

bool RollBack::GiveBackAll(const std::shared_ptr<Source>& source) {
  mutex_lock l(mu_);
  GiveBackFrom(source->FirstEntry());
  Finish();
  return !stale_.empty();
}

void RollBack::Change(const std::shared_ptr<Source>& source,
                      Outcomes restored) {
  mutex_lock l(mu_);
  for (Ledger::Entry& entry : source->BeginVersion(std::move(restored))) {
    if (entry.holder != nullptr) MakeStale(entry.holder);
    void_.push_back(std::move(entry));
  }
  Finish();
}

bool RollBack::Absorb(const std::shared_ptr<ReadSet>& record,
                      const std::shared_ptr<ReadSet>& run) {
  mutex_lock l(mu_);
  if (record->is_stale()) return false;
  if (run->is_stale()) {
    MakeStale(record);
    Finish();
    return true;
  }
  std::vector<HeldEntry> entries;
  record->MakeStale(&entries);
  for (HeldEntry& entry : entries) entry.source->HandOver(entry, run);
  return true;
}

bool RollBack::MakeStale(const std::shared_ptr<ReadSet>& reads) {
  if (!reads->MakeStale(&todo_)) return false;
  stale_.push_back(reads);
  return true;
}

void RollBack::GiveBackFrom(const HeldEntry& entry) {
  entry.source->GiveBackFrom(
      entry,
      [this](const std::shared_ptr<ReadSet>& holder)
          TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return MakeStale(holder); });
}

void RollBack::Finish() {
  while (!todo_.empty()) {
    done_.push_back(std::move(todo_.back()));
    todo_.pop_back();
    GiveBackFrom(done_.back());
  }
}

void RollBack::TellStages() {
  std::vector<core::RefCountPtr<Stage>> stages;
  for (const std::shared_ptr<ReadSet>& reads : stale_) {
    core::RefCountPtr<Stage> stage = reads->stage_.GetNewRef();
    if (stage == nullptr || absl::c_linear_search(stages, stage)) continue;
    stages.push_back(std::move(stage));
  }
  stale_.clear();
  done_.clear();
  void_.clear();
  for (const core::RefCountPtr<Stage>& stage : stages) stage->OnRollBack();
}

}  // namespace staging
}  // namespace tensorflow
