// SPDX-License-Identifier: Apache-2.0
//
// The kernels through which the initialiser of an iterator restarts the stage.

#include <string>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"
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

// A restart that a step container owns, like a StagedRun: it lasts until the
// session's run that began it ends.
class Restart : public ResourceBase {
 public:
  explicit Restart(TensorBuffer* buffer)
      : buffer_(tsl::core::GetNewRef(buffer)) {}
  ~Restart() override { buffer_->EndRestart(); }

  std::string DebugString() const override {
    return strings::StrCat("Restart of '", buffer_->name(), "'");
  }

 private:
  const core::RefCountPtr<TensorBuffer> buffer_;
};

class TensorBufferRestartOp : public AsyncBufferKernel {
 public:
  using AsyncBufferKernel::AsyncBufferKernel;

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    buffer->RestartAsync(
        ctx->cancellation_manager(),
        [this, ctx, buffer, done = std::move(done)](const Status& status) {
          ctx->SetStatus(status.ok() ? Keep(ctx, buffer) : status);
          done();
        });
  }

  // Stores the restart that has just begun in the step container of `ctx`.
  // After an error, the restart has ended.
  Status Keep(OpKernelContext* ctx, TensorBuffer* buffer) const {
    core::RefCountPtr<Restart> restart(new Restart(buffer));
    if (ctx->step_container() == nullptr) {
      return errors::Internal("TensorBufferRestart of stage '", buffer->name(),
                              "' must run in a session: its run has no step "
                              "container.");
    }
    return ctx->step_container()->Create(ctx->resource_manager(), name(),
                                         restart.release());
  }
};

REGISTER_KERNEL_BUILDER(Name(kBeginOp).Device(DEVICE_CPU), TensorBufferBeginOp);
REGISTER_KERNEL_BUILDER(Name(kBeginOp).Device(DEVICE_GPU), TensorBufferBeginOp);
REGISTER_KERNEL_BUILDER(Name(kRestartOp).Device(DEVICE_CPU),
                        TensorBufferRestartOp);
REGISTER_KERNEL_BUILDER(Name(kRestartOp).Device(DEVICE_GPU),
                        TensorBufferRestartOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
