// SPDX-License-Identifier: Apache-2.0
//
// The kernels through which the initialiser of an iterator restarts the stage.

#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"
#include "tensorflow_staging/core/kernels/hold_kernel.h"
#include "tensorflow_staging/core/kernels/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

class TensorBufferBeginOp : public AsyncBufferKernel {
 public:
  using AsyncBufferKernel::AsyncBufferKernel;

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    buffer->BeginRunAsync(
        ctx->cancellation_manager(),
        [this, ctx, buffer, done = std::move(done)](const Status& status) {
          ctx->SetStatus(status.ok() ? StagedRun::Keep(ctx, manager(), buffer)
                                     : status);
          done();
        });
  }
};

using TensorBufferRestartOp =
    HoldKernel<&TensorBuffer::RestartAsync, &TensorBuffer::EndRestart>;

REGISTER_KERNEL_BUILDER(Name(kBeginOp).Device(DEVICE_CPU), TensorBufferBeginOp);
REGISTER_KERNEL_BUILDER(Name(kBeginOp).Device(DEVICE_GPU), TensorBufferBeginOp);
REGISTER_KERNEL_BUILDER(Name(kRestartOp).Device(DEVICE_CPU),
                        TensorBufferRestartOp);
REGISTER_KERNEL_BUILDER(Name(kRestartOp).Device(DEVICE_GPU),
                        TensorBufferRestartOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
