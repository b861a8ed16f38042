// SPDX-License-Identifier: Apache-2.0
//
// Thin kernels over buffer/tensor_buffer.h, which find the buffer by its handle.
// They run on the CPU; a record that a GPU uses is copied there as any tensor.

#include <string>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/step_buffer.h"
#include "tensorflow_staging/core/records/owned_tensor.h"
#include "tensorflow_staging/core/sources/run_holds.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

using BufferRef = core::RefCountPtr<StepBuffer>;

// Returns the buffer whose handle is input 0.
StatusOr<BufferRef> BufferOf(OpKernelContext* ctx) {
  const Tensor& tensor = ctx->input(0);
  if (tensor.NumElements() != 1) {
    return errors::InvalidArgument("buffer must be a scalar, got shape ",
                                   tensor.shape().DebugString(), ".");
  }
  const ResourceHandle& handle = tensor.flat<ResourceHandle>()(0);
  if (!handle.IsRefCounting()) {
    return errors::InvalidArgument("'", handle.name(),
                                   "' is no handle of a StepBuffer.");
  }
  TF_ASSIGN_OR_RETURN(StepBuffer * buffer, handle.GetResource<StepBuffer>());
  return tsl::core::GetNewRef(buffer);
}

class StepBufferOp : public OpKernel {
 public:
  explicit StepBufferOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("stage", &options_.name));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("capacity", &options_.capacity));
    OP_REQUIRES_OK(ctx,
                   ctx->GetAttr("capacity_bytes", &options_.capacity_bytes));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("tensor_names", &layout_.tensor_names));
    OP_REQUIRES(ctx, options_.capacity != 0,
                errors::InvalidArgument(
                    "capacity is 0; it must be at least 1, or -1, with which "
                    "the buffer chooses it."));
  }

  void Compute(OpKernelContext* ctx) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &output));
    auto* const buffer = new StepBuffer(options_);
    buffer->KeepRecordsOn("CPU:0", layout_);
    output->scalar<ResourceHandle>()() =
        ResourceHandle::MakeRefCountingHandle(buffer, ctx->device()->name());
  }

 private:
  TensorBuffer::Options options_;
  RecordLayout layout_;
};

class StepEndHoldsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override { RunHolds::EndNow(ctx); }
};

class StepBufferPutOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    StatusOr<BufferRef> found = BufferOf(ctx);
    OP_REQUIRES_OK_ASYNC(ctx, found.status(), done);
    BufferRef buffer = *std::move(found);
    TensorBuffer::Record record;
    for (int i = 1; i < ctx->num_inputs(); ++i) {
      record.push_back(OwnedTensor(ctx->input(i)));
    }
    std::shared_ptr<StagedRun> run =
        StagedRun::Find(ctx->cancellation_manager());
    StagedRun* const of_stage =
        run != nullptr && run->stage() == buffer.get() ? run.get() : nullptr;
    TensorBuffer* const to = buffer.get();
    to->PutAsync(
        std::move(record), /*timeout_millis=*/0, ctx->cancellation_manager(),
        [ctx, run = std::move(run), of_stage, buffer = std::move(buffer),
         done = std::move(done)](const Status& status) {
          if (status.ok() && of_stage != nullptr) of_stage->NotePut();
          ctx->SetStatus(status);
          done();
        },
        of_stage);
  }
};

class StepBufferTakeOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  // Only moves references, which is not worth a switch to another thread.
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    StatusOr<BufferRef> found = BufferOf(ctx);
    OP_REQUIRES_OK_ASYNC(ctx, found.status(), done);
    BufferRef buffer = *std::move(found);
    TensorBuffer* const from = buffer.get();
    buffer->NoteTake();
    from->TakeAsync(
        ctx->cancellation_manager(),
        [this, ctx, buffer = std::move(buffer), done = std::move(done)](
            const Status& status, TensorBuffer::Taken taken) {
          if (!status.ok() && !errors::IsOutOfRange(status) &&
              !errors::IsCancelled(status)) {
            buffer->NoteErrorTaken();
          }
          ctx->SetStatus(status.ok() ? SetOutputs(ctx, std::move(taken.record))
                                     : status);
          done();
        });
  }

 private:
  // Checks the types of the record: a checkpoint may have one of another model.
  Status SetOutputs(OpKernelContext* ctx, TensorBuffer::Record record) const {
    bool fits = static_cast<int>(record.size()) == ctx->num_outputs();
    for (int i = 0; fits && i < ctx->num_outputs(); ++i) {
      fits = record[i].dtype() == output_type(i);
    }
    if (!fits) {
      DataTypeVector dtypes;
      for (const Tensor& tensor : record) dtypes.push_back(tensor.dtype());
      return errors::InvalidArgument(
          "The record has the types ", DataTypeVectorString(dtypes), " where '",
          name(), "' expects ", DataTypeVectorString(output_types()), ".");
    }
    for (int i = 0; i < ctx->num_outputs(); ++i) {
      ctx->set_output(i, std::move(record[i]));
    }
    return OkStatus();
  }
};

REGISTER_KERNEL_BUILDER(Name(kStepBufferOp).Device(DEVICE_CPU), StepBufferOp);
REGISTER_KERNEL_BUILDER(Name("StepEndHolds").Device(DEVICE_CPU),
                        StepEndHoldsOp);
REGISTER_KERNEL_BUILDER(Name(kStepPutOp).Device(DEVICE_CPU), StepBufferPutOp);
REGISTER_KERNEL_BUILDER(Name(kStepTakeOp).Device(DEVICE_CPU), StepBufferTakeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
