// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/stage_buffer.h"

#include <string>
#include <thread>  // NOLINT

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

Status FindOrMake(ResourceMgr* manager, const std::string& container,
                  const std::string& name, const TensorBuffer::Options& options,
                  core::RefCountPtr<TensorBuffer>* buffer) {
  while (true) {
    TensorBuffer* found = nullptr;
    if (manager->Lookup(container, name, &found).ok()) {
      buffer->reset(found);
      return OkStatus();
    }
    buffer->reset(new TensorBuffer(options));
    const Status status =
        manager->CreateUnowned(container, name, buffer->get());
    if (!errors::IsAlreadyExists(status)) return status;
    // Another kernel has created a buffer meanwhile, or the last owner of one
    // has released it and is about to remove it from the manager.
    std::this_thread::yield();
  }
}

}  // namespace

StageBuffer::StageBuffer(OpKernelConstruction* ctx) {
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kSharedNameAttr, &options_.name));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kCapacityAttr, &options_.capacity));
  OP_REQUIRES_OK(ctx,
                 ctx->GetAttr(kCapacityBytesAttr, &options_.capacity_bytes));
  OP_REQUIRES(ctx, !options_.name.empty(),
              errors::InvalidArgument(
                  "shared_name of ", ctx->def().op(),
                  " is empty. Give all ops of a stage the same non-empty "
                  "shared_name, which identifies their buffer."));
}

Status StageBuffer::Get(OpKernelContext* ctx, const OpKernel& kernel,
                        TensorBuffer** buffer) {
  *buffer = found_.load(std::memory_order_acquire);
  if (*buffer != nullptr) return OkStatus();
  mutex_lock l(mu_);
  if (owner_ == nullptr) {
    ContainerInfo info;
    TF_RETURN_IF_ERROR(info.Init(ctx->resource_manager(), kernel.def()));
    core::RefCountPtr<TensorBuffer> shared;
    TF_RETURN_IF_ERROR(FindOrMake(info.resource_manager(), info.container(),
                                  info.name(), options_, &shared));
    owner_ = std::move(shared);
    found_.store(owner_.get(), std::memory_order_release);
  }
  *buffer = owner_.get();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
