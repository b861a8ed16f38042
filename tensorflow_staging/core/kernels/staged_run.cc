// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/staged_run.h"

#include <cstdint>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/kernels/keep_in_step.h"

namespace tensorflow {
namespace staging {
namespace {

// The address makes the name unique: several containers may hold buffers of the
// same name.
std::string NameInStep(const TensorBuffer* buffer) {
  return strings::StrCat(buffer->name(), "/",
                         reinterpret_cast<std::uintptr_t>(buffer));
}

}  // namespace

Status StagedRun::Keep(OpKernelContext* ctx, ResourceMgr* manager,
                       TensorBuffer* buffer) {
  return KeepInStep(ctx, manager, NameInStep(buffer), buffer->name(),
                    core::RefCountPtr<StagedRun>(new StagedRun(buffer)));
}

void StagedRun::NotePut(OpKernelContext* ctx, ResourceMgr* manager,
                        const TensorBuffer* buffer) {
  if (!buffer->AdmitsRuns() || ctx->step_container() == nullptr) return;
  StagedRun* run = nullptr;
  if (ctx->step_container()->Lookup(manager, NameInStep(buffer), &run).ok()) {
    core::ScopedUnref unref(run);
    run->has_put_ = true;
  }
}

StagedRun::StagedRun(TensorBuffer* buffer)
    : buffer_(tsl::core::GetNewRef(buffer)) {}

StagedRun::~StagedRun() { buffer_->EndRun(has_put_); }

std::string StagedRun::DebugString() const {
  return strings::StrCat("StagedRun of '", buffer_->name(), "'");
}

}  // namespace staging
}  // namespace tensorflow
