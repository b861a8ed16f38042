// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_

#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/kernels/stage_buffer.h"

namespace tensorflow {
namespace staging {

// A kernel that calls its stage's buffer, and waits without blocking a thread.
class AsyncBufferKernel : public AsyncOpKernel {
 public:
  explicit AsyncBufferKernel(OpKernelConstruction* ctx)
      : AsyncOpKernel(ctx), buffer_(ctx) {}

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) final {
    TensorBuffer* buffer = nullptr;
    OP_REQUIRES_OK_ASYNC(ctx, buffer_.Get(ctx, *this, &buffer), done);
    RunAsync(ctx, buffer, std::move(done));
  }

  // Only moves references, which is not worth a switch to another thread.
  bool IsExpensive() final { return false; }

 private:
  virtual void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                        DoneCallback done) = 0;

  StageBuffer buffer_;
};

// A kernel that calls its stage's buffer and does not wait.
class BufferKernel : public OpKernel {
 public:
  explicit BufferKernel(OpKernelConstruction* ctx)
      : OpKernel(ctx), buffer_(ctx) {}

  void Compute(OpKernelContext* ctx) final {
    TensorBuffer* buffer = nullptr;
    OP_REQUIRES_OK(ctx, buffer_.Get(ctx, *this, &buffer));
    Run(ctx, buffer);
  }

  bool IsExpensive() final { return false; }

 private:
  virtual void Run(OpKernelContext* ctx, TensorBuffer* buffer) = 0;

  StageBuffer buffer_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_KERNELS_H_
