// SPDX-License-Identifier: Apache-2.0
//
// Thin kernels over buffer/tensor_buffer.h, which find the buffer by its handle.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/buffer/record_in_hand.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer_handle.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/owned_tensor.h"
#include "tensorflow_staging/core/records/record_delivery.h"
#include "tensorflow_staging/core/records/record_shares.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

class StepBufferOp : public OpKernel {
 public:
  explicit StepBufferOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    options_.place_of = PlaceOf;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("stage", &options_.name));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("capacity", &options_.capacity));
    OP_REQUIRES_OK(ctx,
                   ctx->GetAttr("capacity_bytes", &options_.capacity_bytes));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("device_capacity_bytes",
                                     &options_.device_capacity_bytes));
    OP_REQUIRES(ctx, options_.capacity != 0,
                errors::InvalidArgument(
                    "capacity is 0; it must be at least 1, or -1, with which "
                    "the buffer chooses it."));
  }

  void Compute(OpKernelContext* ctx) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &output));
    auto* const buffer = new StepBuffer(options_);
    output->scalar<ResourceHandle>()() =
        ResourceHandle::MakeRefCountingHandle(buffer, ctx->device()->name());
  }

 private:
  TensorBuffer::Options options_;
};

class StepBufferPutOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    StatusOr<StepBufferRef> found = StepBufferOf(ctx->input(0));
    OP_REQUIRES_OK_ASYNC(ctx, found.status(), done);
    StepBufferRef buffer = *std::move(found);
    StepBuffer* const to = buffer.get();
    std::shared_ptr<StagedRun> run =
        StagedRun::Find(ctx->cancellation_manager());
    std::shared_ptr<const RecordDelivery> delivery = to->delivery();
    TensorBuffer::Record record;
    for (int i = 1; i < ctx->num_inputs(); ++i) record.push_back(ctx->input(i));
    // The Take says what is wrong with a record that does not fit.
    if (delivery != nullptr && !delivery->Fits(record)) delivery = nullptr;
    for (size_t i = 0; i < record.size(); ++i) {
      if (delivery == nullptr || !delivery->Wants(i)) {
        record[i] = OwnedTensor(std::move(record[i]));
      }
    }
    if (delivery != nullptr && to->IsInTurn(run.get())) delivery->Own(&record);
    to->PutForRun(
        std::move(run), std::move(record), /*timeout_millis=*/0,
        ctx->cancellation_manager(),
        [ctx, to,
         delivery = std::move(delivery)](TensorBuffer::Record* record) {
          if (delivery != nullptr) Deliver(*ctx, *delivery, to, record);
        },
        [ctx, buffer = std::move(buffer),
         done = std::move(done)](const Status& status) {
          ctx->SetStatus(status);
          done();
        });
  }

 private:
  // Queues the copies of a record that is about to be put.
  static void Deliver(const OpKernelContext& ctx,
                      const RecordDelivery& delivery, StepBuffer* buffer,
                      TensorBuffer::Record* record) {
    const Status status = delivery.DeliverOrKeep(ctx, record);
    if (status.ok()) {
      delivery.Mark(record);
    } else if (errors::IsResourceExhausted(status)) {
      buffer->HoldFewer(status);
    }
  }
};

class StepBufferTakeOp : public AsyncOpKernel {
 public:
  explicit StepBufferTakeOp(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
    std::vector<DeviceShare> shares;
    OP_REQUIRES_OK(ctx, ReadSharesOfTake(*ctx, &shares, &gives_shares_));
    num_tensors_ = ctx->num_outputs() - (gives_shares_ ? 1 : 0);
    if (ctx->device_type() == DEVICE_CPU) return;
    std::vector<int> on_device;
    for (int i = 0; i < num_tensors_; ++i) {
      if (ctx->output_memory_types()[i] == HOST_MEMORY) continue;
      OP_REQUIRES(ctx, DataTypeCanUseMemcpy(output_type(i)),
                  errors::InvalidArgument("Output ", i, " of '", name(), "' (",
                                          DataTypeString(output_type(i)),
                                          ") cannot be copied to ",
                                          ctx->device()->name(), "."));
      on_device.push_back(i);
    }
    delivery_ = std::make_shared<const RecordDelivery>(
        ctx->device()->name(), std::move(on_device), std::move(shares));
  }

  // Only moves references, which is not worth a switch to another thread.
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    if (RecordInHand* const record = RecordInHandOf(ctx->input(0))) {
      UseInHand(ctx, record, done);
      return;
    }
    StatusOr<StepBufferRef> found = StepBufferOf(ctx->input(0));
    OP_REQUIRES_OK_ASYNC(ctx, found.status(), done);
    StepBufferRef buffer = *std::move(found);
    TensorBuffer* const from = buffer.get();
    if (delivery_ != nullptr) buffer->DeliverTo(delivery_);
    StepBufferRef wanted;
    if (buffer->NoteTake()) wanted = tsl::core::GetNewRef(buffer.get());
    from->TakeAsync(
        ctx->cancellation_manager(),
        [this, ctx, buffer = std::move(buffer), done = std::move(done)](
            const Status& status, TensorBuffer::Taken taken) {
          if (!status.ok()) buffer->NoteTakeFailed();
          if (status.ok()) {
            Use(ctx, buffer.get(), std::move(taken.record), done);
          } else if (errors::IsCancelled(status)) {
            ctx->SetStatus(status);
            done();
          } else {
            buffer->NoteErrorTaken();
            Fail(ctx, status, done);
          }
        });
    if (wanted != nullptr) wanted->SayWanted();
  }

 private:
  // Fails as late as a read of the data might. What a step does without its record,
  // such as counting, runs beside the Take, on each of the step's devices. A failure
  // ends the step for those that have not begun. A read gives them the time to begin;
  // a Take would not, since it knows at once that the data has ended.
  static void Fail(OpKernelContext* ctx, const Status& status,
                   const DoneCallback& done) {
    // Chosen, not measured.
    constexpr int64_t kReadMicros = 2000;
    Env::Default()->SchedClosureAfter(kReadMicros, [ctx, status, done] {
      ctx->SetStatus(status);
      done();
    });
  }

  // Uses a record that StepBufferTakeIfAny has taken.
  void UseInHand(OpKernelContext* ctx, RecordInHand* in_hand,
                 const DoneCallback& done) const {
    if (delivery_ != nullptr) in_hand->buffer()->DeliverTo(delivery_);
    std::optional<TensorBuffer::Record> record = in_hand->Use();
    OP_REQUIRES_ASYNC(ctx, record.has_value(),
                      errors::FailedPrecondition(
                          "'", name(), "' uses a record of stage '",
                          in_hand->buffer()->name(), "' that was used before."),
                      done);
    Use(ctx, in_hand->buffer(), *std::move(record), done);
  }

  void Use(OpKernelContext* ctx, StepBuffer* buffer,
           TensorBuffer::Record record, const DoneCallback& done) const {
    RecordMark mark = RemoveMark(&record);
    const bool on_host = mark.by == nullptr || !mark.kept_free.empty();
    Tensor shares;
    if (!on_host) shares = mark.by->RemoveShares(&record);
    // Nothing in the rest uses the states, so they are on the host.
    buffer->NoteTaken(record);
    if (on_host && delivery_ == nullptr) {
      ctx->SetStatus(SetOutputs(ctx, std::move(record), Tensor()));
      done();
      return;
    }
    if (!on_host && mark.by == delivery_) {
      ctx->SetStatus(SetOutputs(ctx, std::move(record), std::move(shares)));
      done();
      return;
    }
    // There may be no memory yet; or another step has taken records of this buffer
    // to where it runs. This thread may be one that calls back after events, for
    // which memory and copies wait.
    Env::Default()->SchedClosure([this, ctx, on_host, mark = std::move(mark),
                                  record = std::move(record), done]() mutable {
      Status status;
      if (!on_host) status = mark.by->TakeBack(ctx, &record);
      if (status.ok()) status = UseFromHost(ctx, std::move(record));
      mark = {};
      ctx->SetStatus(status);
      done();
    });
  }

  // Checks the types of the record, because another op, the put, chose them.
  Status CheckTypes(const TensorBuffer::Record& record) const {
    bool fits = static_cast<int>(record.size()) == num_tensors_;
    for (int i = 0; fits && i < num_tensors_; ++i) {
      fits = record[i].dtype() == output_type(i);
    }
    if (fits) return OkStatus();
    DataTypeVector dtypes, expected;
    for (const Tensor& tensor : record) dtypes.push_back(tensor.dtype());
    for (int i = 0; i < num_tensors_; ++i) expected.push_back(output_type(i));
    return errors::InvalidArgument(
        "The record has the types ", DataTypeVectorString(dtypes), " where '",
        name(), "' expects ", DataTypeVectorString(expected), ".");
  }

  // Uses a record that the host has.
  Status UseFromHost(OpKernelContext* ctx, TensorBuffer::Record record) const {
    TF_RETURN_IF_ERROR(CheckTypes(record));
    Tensor shares;
    if (delivery_ != nullptr) {
      TF_RETURN_IF_ERROR(delivery_->Deliver(*ctx, &record));
      shares = delivery_->RemoveShares(&record);
    }
    return SetOutputs(ctx, std::move(record), std::move(shares));
  }

  // Uses a record that is where this Take wants it.
  Status SetOutputs(OpKernelContext* ctx, TensorBuffer::Record record,
                    Tensor shares) const {
    TF_RETURN_IF_ERROR(CheckTypes(record));
    if (delivery_ != nullptr) {
      TF_RETURN_IF_ERROR(AwaitContent(record, *ctx->device()));
    }
    for (int i = 0; i < num_tensors_; ++i) {
      ctx->set_output(i, std::move(record[i]));
    }
    if (gives_shares_) ctx->set_output(num_tensors_, std::move(shares));
    return OkStatus();
  }

  // Whether the last output has the shares of further devices.
  bool gives_shares_ = false;
  // Of a record.
  int num_tensors_ = 0;
  // Null on a CPU.
  std::shared_ptr<const RecordDelivery> delivery_;
};

REGISTER_KERNEL_BUILDER(Name(kStepBufferOp).Device(DEVICE_CPU), StepBufferOp);
REGISTER_KERNEL_BUILDER(Name(kStepPutOp).Device(DEVICE_CPU), StepBufferPutOp);
REGISTER_KERNEL_BUILDER(Name(kStepTakeOp).Device(DEVICE_CPU), StepBufferTakeOp);
REGISTER_KERNEL_BUILDER(
    Name(kStepTakeOp).Device(DEVICE_GPU).HostMemory("buffer"),
    StepBufferTakeOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
