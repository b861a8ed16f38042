// SPDX-License-Identifier: Apache-2.0
//
// The op in the place of a read that asks whether there is an element:
// record_in_hand.h.

#include <utility>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/buffer/record_in_hand.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer_handle.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP("StepBufferTakeIfAny")
    .Input("buffer: resource")
    .Output("record: resource")
    .Output("has_record: bool")
    .SetIsStateful()
    .SetIsDistributedCommunication()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Scalar());
      c->set_output(1, c->Scalar());
      return OkStatus();
    })
    .Doc(R"doc(
Takes the oldest record of a buffer, if there is one before the end of the data.

buffer: The handle of the buffer.
record: Scalar. The handle of the record, for one StepBufferTake; no valid one if
  there is no record.
has_record: Scalar. Whether there is a record.
)doc");

class StepBufferTakeIfAnyOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    StatusOr<StepBufferRef> found = StepBufferOf(ctx->input(0));
    OP_REQUIRES_OK_ASYNC(ctx, found.status(), done);
    StepBufferRef buffer = *std::move(found);
    TensorBuffer* const from = buffer.get();
    StepBufferRef wanted;
    if (buffer->NoteTake()) wanted = tsl::core::GetNewRef(buffer.get());
    from->TakeAsync(
        ctx->cancellation_manager(),
        [ctx, buffer = std::move(buffer), done = std::move(done)](
            const Status& status, TensorBuffer::Taken taken) mutable {
          ctx->SetStatus(SetOutputs(ctx, std::move(buffer), status,
                                    std::move(taken.record)));
          done();
        });
    if (wanted != nullptr) wanted->SayWanted();
  }

 private:
  static Status SetOutputs(OpKernelContext* ctx, StepBufferRef buffer,
                           const Status& status, TensorBuffer::Record record) {
    const bool has_record = status.ok();
    if (!has_record) buffer->NoteTakeFailed();
    if (!has_record && !errors::IsOutOfRange(status)) {
      if (!errors::IsCancelled(status)) buffer->NoteErrorTaken();
      return status;
    }
    Tensor* handle = nullptr;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, TensorShape({}), &handle));
    Tensor* has = nullptr;
    TF_RETURN_IF_ERROR(ctx->allocate_output(1, TensorShape({}), &has));
    has->scalar<bool>()() = has_record;
    if (has_record) {
      handle->scalar<ResourceHandle>()() =
          ResourceHandle::MakeRefCountingHandle(
              new RecordInHand(std::move(buffer), std::move(record)),
              ctx->device()->name());
    }
    return OkStatus();
  }
};

REGISTER_KERNEL_BUILDER(Name(kStepTakeIfAnyOp).Device(DEVICE_CPU),
                        StepBufferTakeIfAnyOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
