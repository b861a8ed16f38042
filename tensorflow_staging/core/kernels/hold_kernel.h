// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_

#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"

namespace tensorflow {
namespace staging {

// A hold on a buffer, such as a restart. A step container owns it, like a
// StagedRun: it lasts until the session's run that began it ends.
class Hold : public ResourceBase {
 public:
  using End = void (TensorBuffer::*)();

  // `end` ends the hold.
  Hold(TensorBuffer* buffer, End end)
      : buffer_(tsl::core::GetNewRef(buffer)), end_(end) {}
  ~Hold() override { (buffer_.get()->*end_)(); }

  std::string DebugString() const override {
    return strings::StrCat("Hold of '", buffer_->name(), "'");
  }

 private:
  const core::RefCountPtr<TensorBuffer> buffer_;
  const End end_;
};

// Begins a hold, and waits for that without blocking a thread.
template <void (TensorBuffer::*begin)(CancellationManager*,
                                      absl::AnyInvocable<void(const Status&)>),
          Hold::End end>
class HoldKernel : public AsyncBufferKernel {
 public:
  using AsyncBufferKernel::AsyncBufferKernel;

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    (buffer->*begin)(
        ctx->cancellation_manager(),
        [this, ctx, buffer, done = std::move(done)](const Status& status) {
          ctx->SetStatus(status.ok() ? Keep(ctx, buffer) : status);
          done();
        });
  }

  // Stores the hold that has just begun in the step container of `ctx`. After
  // an error, the hold has ended.
  Status Keep(OpKernelContext* ctx, TensorBuffer* buffer) const {
    core::RefCountPtr<Hold> hold(new Hold(buffer, end));
    if (ctx->step_container() == nullptr) {
      return errors::Internal(type_string(), " of stage '", buffer->name(),
                              "' must run in a session: its run has no step "
                              "container.");
    }
    return ctx->step_container()->Create(ctx->resource_manager(), name(),
                                         hold.release());
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_
