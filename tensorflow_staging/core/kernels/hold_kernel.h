// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_

#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"
#include "tensorflow_staging/core/kernels/keep_in_step.h"

namespace tensorflow {
namespace staging {

// A hold on a buffer, such as a restart. A step container owns it
// (keep_in_step.h): it lasts until the session's run that began it ends.
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

  // Stores the hold that has just begun. After an error, it has ended.
  Status Keep(OpKernelContext* ctx, TensorBuffer* buffer) const {
    return KeepInStep(ctx, ctx->resource_manager(), name(), buffer->name(),
                      core::RefCountPtr<Hold>(new Hold(buffer, end)));
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_HOLD_KERNEL_H_
