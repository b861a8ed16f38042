// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/save_moment.h"

#include <atomic>
#include <limits>
#include <set>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/sources/read_set.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kResourceName[] = "staging_save_moment";
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct Moments {
  mutex mu;
  // Of the saves that have not ended.
  std::set<int64_t> open TF_GUARDED_BY(mu);
  std::atomic<int64_t> oldest{kNone};
  std::atomic<int64_t> latest{1};
};

Moments* GetMoments() {
  static auto* const moments = new Moments;
  return moments;
}

}  // namespace

core::RefCountPtr<SaveMoment> SaveMoment::Of(OpKernelContext* ctx) {
  ScopedStepContainer* const container = ctx->step_container();
  SaveMoment* moment = nullptr;
  const auto make = [](SaveMoment** made) {
    *made = new SaveMoment;
    return OkStatus();
  };
  // Eager contexts number their container 0, and sessions no run.
  if (container == nullptr || container->StepId() == 0 ||
      !container
           ->LookupOrCreate<SaveMoment>(ctx->resource_manager(), kResourceName,
                                        &moment, make)
           .ok()) {
    moment = new SaveMoment;
  }
  return core::RefCountPtr<SaveMoment>(moment);
}

int64_t SaveMoment::Now() {
  return GetMoments()->latest.load(std::memory_order_acquire);
}

bool SaveMoment::MayNeed(const ReadSet& used) {
  const int64_t oldest = GetMoments()->oldest.load(std::memory_order_acquire);
  return oldest != kNone && used.IsUnusedAt(oldest);
}

SaveMoment::SaveMoment() {
  Moments* const moments = GetMoments();
  mutex_lock l(moments->mu);
  value_ = moments->latest + 1;
  moments->open.insert(value_);
  // In this order: nobody may prune what has been used at a moment that is not
  // yet known to be open.
  moments->oldest = *moments->open.begin();
  moments->latest = value_;
}

SaveMoment::~SaveMoment() {
  Moments* const moments = GetMoments();
  mutex_lock l(moments->mu);
  moments->open.erase(value_);
  moments->oldest = moments->open.empty() ? kNone : *moments->open.begin();
}

}  // namespace staging
}  // namespace tensorflow
