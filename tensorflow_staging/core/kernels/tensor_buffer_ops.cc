// SPDX-License-Identifier: Apache-2.0
//
// Thin shells over framework/tensor_buffer.h: they find the buffer, and turn
// inputs, outputs and attributes into its terms.

#include <atomic>
#include <string>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow_staging/core/framework/tensor_buffer.h"

namespace tensorflow {
namespace staging {
namespace {

// The buffer of a kernel's stage: looked up in the device's resource manager,
// or made there, by the first run that asks, and kept from then on.
// Thread-safe.
class StageBuffer {
 public:
  // Reads the attributes; fails the construction if they are unusable.
  explicit StageBuffer(OpKernelConstruction* ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shared_name", &options_.name));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("capacity", &options_.capacity));
    OP_REQUIRES_OK(ctx,
                   ctx->GetAttr("capacity_bytes", &options_.capacity_bytes));
    OP_REQUIRES(ctx, !options_.name.empty(),
                errors::InvalidArgument(
                    "shared_name of ", ctx->def().op(),
                    " is empty. The ops of a stage find each other by it."));
  }

  // `buffer` lives as long as this object. `kernel` is the owner of this
  // object.
  Status Get(OpKernelContext* ctx, const OpKernel& kernel,
             TensorBuffer** buffer) TF_LOCKS_EXCLUDED(mu_) {
    *buffer = found_.load(std::memory_order_acquire);
    if (*buffer != nullptr) return OkStatus();
    mutex_lock l(mu_);
    if (owner_ == nullptr) {
      ContainerInfo info;
      TF_RETURN_IF_ERROR(info.Init(ctx->resource_manager(), kernel.def()));
      TensorBuffer* shared = nullptr;
      TF_RETURN_IF_ERROR(info.resource_manager()->LookupOrCreate<TensorBuffer>(
          info.container(), info.name(), &shared,
          [this](TensorBuffer** created) {
            *created = new TensorBuffer(options_);
            return OkStatus();
          }));
      owner_.reset(shared);
      found_.store(shared, std::memory_order_release);
    }
    *buffer = owner_.get();
    return OkStatus();
  }

 private:
  TensorBuffer::Options options_;
  mutex mu_;
  core::RefCountPtr<TensorBuffer> owner_ TF_GUARDED_BY(mu_);
  // owner_, for reading without the lock.
  std::atomic<TensorBuffer*> found_{nullptr};
};

// A kernel that waits without a thread.
class AsyncBufferKernel : public AsyncOpKernel {
 public:
  explicit AsyncBufferKernel(OpKernelConstruction* ctx)
      : AsyncOpKernel(ctx), buffer_(ctx) {}

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) final {
    TensorBuffer* buffer = nullptr;
    OP_REQUIRES_OK_ASYNC(ctx, buffer_.Get(ctx, *this, &buffer), done);
    RunAsync(ctx, buffer, std::move(done));
  }

  // Moves references only: not worth a hop to another thread.
  bool IsExpensive() final { return false; }

 private:
  virtual void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                        DoneCallback done) = 0;

  StageBuffer buffer_;
};

// A kernel that does not wait.
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

class TensorBufferPutOp : public AsyncBufferKernel {
 public:
  explicit TensorBufferPutOp(OpKernelConstruction* ctx)
      : AsyncBufferKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("timeout_millis", &timeout_millis_));
  }

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    TensorBuffer::Record record;
    record.reserve(ctx->num_inputs());
    for (int i = 0; i < ctx->num_inputs(); ++i) record.push_back(ctx->input(i));
    buffer->PutAsync(std::move(record), timeout_millis_,
                     ctx->cancellation_manager(),
                     [ctx, done = std::move(done)](const Status& status) {
                       ctx->SetStatus(status);
                       done();
                     });
  }

  int64_t timeout_millis_ = 0;
};

class TensorBufferTakeOp : public AsyncBufferKernel {
 public:
  using AsyncBufferKernel::AsyncBufferKernel;

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    buffer->TakeAsync(ctx->cancellation_manager(),
                      [this, ctx, done = std::move(done)](
                          const Status& status, TensorBuffer::Record record) {
                        ctx->SetStatus(status.ok()
                                           ? SetOutputs(ctx, std::move(record))
                                           : status);
                        done();
                      });
  }

  // The record has its types from another op, the one that put it.
  Status SetOutputs(OpKernelContext* ctx, TensorBuffer::Record record) const {
    bool fits = static_cast<int>(record.size()) == ctx->num_outputs();
    for (int i = 0; fits && i < ctx->num_outputs(); ++i) {
      fits = record[i].dtype() == output_type(i);
    }
    if (!fits) {
      DataTypeVector dtypes;
      for (const Tensor& tensor : record) dtypes.push_back(tensor.dtype());
      return errors::InvalidArgument("TensorBufferPut put a record of ",
                                     DataTypeVectorString(dtypes),
                                     " where TensorBufferTake expects ",
                                     DataTypeVectorString(output_types()),
                                     ". Both must have the same dtypes.");
    }
    for (int i = 0; i < ctx->num_outputs(); ++i) {
      ctx->set_output(i, std::move(record[i]));
    }
    return OkStatus();
  }
};

class TensorBufferCancelOp : public BufferKernel {
 public:
  using BufferKernel::BufferKernel;

 private:
  void Run(OpKernelContext* ctx, TensorBuffer* buffer) override {
    buffer->Cancel();
  }
};

class TensorBufferResumeOp : public BufferKernel {
 public:
  using BufferKernel::BufferKernel;

 private:
  void Run(OpKernelContext* ctx, TensorBuffer* buffer) override {
    buffer->Resume();
  }
};

class TensorBufferCloseOp : public BufferKernel {
 public:
  using BufferKernel::BufferKernel;

 private:
  void Run(OpKernelContext* ctx, TensorBuffer* buffer) override {
    const Tensor& code = ctx->input(0);
    const Tensor& message = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(code.shape()),
                errors::InvalidArgument("error_code is not a scalar: ",
                                        code.shape().DebugString()));
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(message.shape()),
                errors::InvalidArgument("error_message is not a scalar: ",
                                        message.shape().DebugString()));
    buffer->Close(Status(static_cast<absl::StatusCode>(code.scalar<int32>()()),
                         message.scalar<tstring>()()));
  }
};

class TensorBufferSizeOp : public BufferKernel {
 public:
  using BufferKernel::BufferKernel;

 private:
  void Run(OpKernelContext* ctx, TensorBuffer* buffer) override {
    Tensor* size = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &size));
    size->scalar<int64_t>()() = buffer->Size();
  }
};

// Records stay where they are: in the memory of the device that made them. The
// inputs and outputs that steer a buffer are read on the host.
REGISTER_KERNEL_BUILDER(Name("TensorBufferPut").Device(DEVICE_CPU),
                        TensorBufferPutOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferPut").Device(DEVICE_GPU),
                        TensorBufferPutOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferTake").Device(DEVICE_CPU),
                        TensorBufferTakeOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferTake").Device(DEVICE_GPU),
                        TensorBufferTakeOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferCancel").Device(DEVICE_CPU),
                        TensorBufferCancelOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferCancel").Device(DEVICE_GPU),
                        TensorBufferCancelOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferResume").Device(DEVICE_CPU),
                        TensorBufferResumeOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferResume").Device(DEVICE_GPU),
                        TensorBufferResumeOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferClose").Device(DEVICE_CPU),
                        TensorBufferCloseOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferClose")
                            .Device(DEVICE_GPU)
                            .HostMemory("error_code")
                            .HostMemory("error_message"),
                        TensorBufferCloseOp);
REGISTER_KERNEL_BUILDER(Name("TensorBufferSize").Device(DEVICE_CPU),
                        TensorBufferSizeOp);
REGISTER_KERNEL_BUILDER(
    Name("TensorBufferSize").Device(DEVICE_GPU).HostMemory("size"),
    TensorBufferSizeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
