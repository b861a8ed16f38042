// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/source_reader.h"

#include <set>
#include <utility>

#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {
namespace {

// The names of the stages of this process.
struct StageNames {
  mutex mu;
  std::multiset<std::string> names TF_GUARDED_BY(mu);
};

StageNames* GetStageNames() {
  static auto* const names = new StageNames;
  return names;
}

thread_local core::WeakPtr<SourceReader>* resumed_stage = nullptr;

}  // namespace

core::WeakPtr<SourceReader>* ResumedStage() { return resumed_stage; }

ScopedResumedStage::ScopedResumedStage(core::WeakPtr<SourceReader>* stage)
    : stage_(&resumed_stage, stage) {}

SourceReader::SourceReader(std::string name) : name_(std::move(name)) {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  stages->names.insert(name_);
}

SourceReader::~SourceReader() {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  stages->names.erase(stages->names.find(name_));
}

bool SourceReader::Exists(const std::string& name) {
  StageNames* const stages = GetStageNames();
  mutex_lock l(stages->mu);
  return stages->names.count(name) > 0;
}

void SourceReader::AddTaker(SourceReader* taker) {
  mutex_lock l(takers_mu_);
  for (auto& [address, weak] : takers_) {
    if (address != taker) continue;
    // The one before, which is gone, may have had the same address.
    weak = core::WeakPtr<SourceReader>(taker);
    return;
  }
  takers_.emplace_back(taker, core::WeakPtr<SourceReader>(taker));
}

std::vector<core::RefCountPtr<SourceReader>> SourceReader::Takers() {
  std::vector<core::RefCountPtr<SourceReader>> takers;
  mutex_lock l(takers_mu_);
  for (const auto& [address, weak] : takers_) {
    core::RefCountPtr<SourceReader> taker = weak.GetNewRef();
    if (taker != nullptr) takers.push_back(std::move(taker));
  }
  return takers;
}

Status SourceReader::AwaitPause(const void* step_container,
                                CancellationManager* cancellation) {
  Status paused;
  Notification done;
  Pause(step_container, cancellation, [&paused, &done](const Status& status) {
    paused = status;
    done.Notify();
  });
  done.WaitForNotification();
  return paused;
}

}  // namespace staging
}  // namespace tensorflow
