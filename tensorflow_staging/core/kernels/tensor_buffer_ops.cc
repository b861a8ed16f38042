// SPDX-License-Identifier: Apache-2.0
//
// Thin kernels over buffer/tensor_buffer.h: each finds the buffer of its stage
// and translates inputs, outputs and attributes into a call of the buffer.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/owned_tensor.h"
#include "tensorflow_staging/core/records/record_delivery.h"
#include "tensorflow_staging/core/records/record_loan.h"
#include "tensorflow_staging/core/records/record_shares.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {
namespace {

class TensorBufferPutOp : public AsyncBufferKernel {
 public:
  explicit TensorBufferPutOp(OpKernelConstruction* ctx)
      : AsyncBufferKernel(ctx), on_cpu_(ctx->device_type() == DEVICE_CPU) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kTimeoutMillisAttr, &timeout_millis_));
    std::vector<int> copied;
    if (TryGetNodeAttr(def(), kCopiedInputsAttr, &copied)) {
      OP_REQUIRES_OK(ctx, CheckCopiedInputs(*ctx, copied));
    }
    for (int i = 0; i < ctx->num_inputs(); ++i) {
      const bool is_copied = std::count(copied.begin(), copied.end(), i) > 0;
      if (OnHost(i) && !is_copied) kept_on_host_.push_back(i);
    }
    std::vector<DeviceShare> shares;
    OP_REQUIRES_OK(ctx, ReadSharesOfPut(*ctx, &shares));
    if (!copied.empty() || !shares.empty()) {
      delivery_ = std::make_shared<const RecordDelivery>(
          ctx->device()->name(), std::move(copied), std::move(shares));
    }
    if (TryGetNodeAttr(def(), kHandsOverAttr, &hands_over_)) {
      OP_REQUIRES(ctx, ctx->device_type() != DEVICE_CPU,
                  errors::InvalidArgument(kHandsOverAttr, " of ", def().name(),
                                          " is set on a CPU; it is for Puts on "
                                          "accelerators."));
    }
  }

  bool IsExpensive() override { return delivery_ != nullptr; }

 private:
  // Anybody can write a graph with the attribute.
  static Status CheckCopiedInputs(const OpKernelConstruction& ctx,
                                  const std::vector<int>& copied) {
    if (ctx.device_type() == DEVICE_CPU) {
      return errors::InvalidArgument(kCopiedInputsAttr, " of ",
                                     ctx.def().name(),
                                     " is set on a CPU; it is for Puts on "
                                     "accelerators.");
    }
    int last = -1;
    for (int i : copied) {
      if (i <= last || i >= ctx.num_inputs()) {
        return errors::InvalidArgument(
            kCopiedInputsAttr, " of ", ctx.def().name(), " contains ", i,
            "; it must contain indices of its ", ctx.num_inputs(),
            " inputs, in ascending order.");
      }
      if (ctx.input_memory_types()[i] != HOST_MEMORY ||
          !DataTypeCanUseMemcpy(ctx.input_type(i))) {
        return errors::InvalidArgument(
            kCopiedInputsAttr, " of ", ctx.def().name(), " contains ", i,
            ", but input ", i, " (", DataTypeString(ctx.input_type(i)),
            ") is not a tensor in host memory that can be copied as bytes.");
      }
      last = i;
    }
    return OkStatus();
  }

  bool OnHost(int input) const {
    return on_cpu_ || input_memory_types()[input] == HOST_MEMORY;
  }

  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    TensorBuffer::Record record;
    record.reserve(ctx->num_inputs());
    for (int i = 0; i < ctx->num_inputs(); ++i) {
      record.push_back(ctx->input(i));
    }
    for (int i : kept_on_host_) {
      record[i] = OwnedTensor(std::move(record[i]));
    }
    std::shared_ptr<StagedRun> run =
        StagedRun::Find(ctx->cancellation_manager());
    if (delivery_ != nullptr) {
      OP_REQUIRES_OK_ASYNC(ctx, delivery_->CheckShares(*ctx), done);
      if (buffer->IsInTurn(run.get())) delivery_->Own(&record);
    }
    HandOver(ctx, buffer, std::move(run), std::move(record), std::move(done));
  }

  // Puts the record when all streams of the GPU can use it.
  void HandOver(OpKernelContext* ctx, TensorBuffer* buffer,
                std::shared_ptr<StagedRun> run, TensorBuffer::Record record,
                DoneCallback done) const {
    if (!hands_over_) {
      AwaitAdmission(ctx, buffer, std::move(run), std::move(record),
                     std::move(done));
      return;
    }
    KernelStream stream;
    OP_REQUIRES_OK_ASYNC(ctx, KernelStream::Of(*ctx->device(), &stream), done);
    stream.ThenCall([this, ctx, buffer, run = std::move(run),
                     record = std::move(record),
                     done = std::move(done)]() mutable {
      auto put = [this, ctx, buffer, run = std::move(run),
                  record = std::move(record),
                  done = std::move(done)]() mutable {
        AwaitAdmission(ctx, buffer, std::move(run), std::move(record),
                       std::move(done));
      };
      if (delivery_ == nullptr) {
        put();
      } else {
        // This thread calls back after events, and packing takes long.
        Env::Default()->SchedClosure(std::move(put));
      }
    });
  }

  void AwaitAdmission(OpKernelContext* ctx, TensorBuffer* buffer,
                      std::shared_ptr<StagedRun> run,
                      TensorBuffer::Record record, DoneCallback done) const {
    // A run of another stage may contain this Put.
    if (run == nullptr || run->stage() != buffer || run->is_admitted()) {
      Put(ctx, buffer, std::move(run), std::move(record), std::move(done));
      return;
    }
    // A run on a server that has read no iterator, so that nothing has waited yet.
    StagedRun* const waiting = run.get();
    waiting->AwaitAdmission(
        ctx->cancellation_manager(),
        [this, ctx, buffer, run = std::move(run), record = std::move(record),
         done = std::move(done)](const Status& status) mutable {
          if (status.ok()) {
            Put(ctx, buffer, std::move(run), std::move(record),
                std::move(done));
          } else {
            ctx->SetStatus(status);
            done();
          }
        });
  }

  void Put(OpKernelContext* ctx, TensorBuffer* buffer,
           std::shared_ptr<StagedRun> run, TensorBuffer::Record record,
           DoneCallback done) const {
    buffer->PutForRun(
        std::move(run), std::move(record), timeout_millis_,
        ctx->cancellation_manager(),
        [this, ctx, buffer](TensorBuffer::Record* record) {
          Deliver(ctx, buffer, record);
        },
        [ctx, done = std::move(done)](const Status& status) {
          ctx->SetStatus(status);
          done();
        });
  }

  // Queues the copies of a record that is about to be put.
  void Deliver(OpKernelContext* ctx, TensorBuffer* buffer,
               TensorBuffer::Record* record) const {
    if (delivery_ == nullptr) return;
    const Status status = delivery_->DeliverOrKeep(*ctx, record);
    if (errors::IsResourceExhausted(status)) buffer->HoldFewer(status);
  }

  const bool on_cpu_;
  int64_t timeout_millis_ = 0;
  // The inputs that the buffer keeps in host memory.
  std::vector<int> kept_on_host_;
  // Null if no device gets anything from the host.
  std::shared_ptr<const RecordDelivery> delivery_;
  bool hands_over_ = false;
};

class TensorBufferTakeOp : public AsyncBufferKernel {
 public:
  explicit TensorBufferTakeOp(OpKernelConstruction* ctx)
      : AsyncBufferKernel(ctx), on_cpu_(ctx->device_type() == DEVICE_CPU) {
    OP_REQUIRES_OK(ctx, RecordLoan::Read(*ctx, &loan_));
    std::vector<DeviceShare> shares;
    OP_REQUIRES_OK(ctx, ReadSharesOfTake(*ctx, &shares, &gives_shares_));
    shares_ = std::make_unique<RecordShares>(std::move(shares));
    num_tensors_ = ctx->num_outputs() - (gives_shares_ ? 1 : 0);
  }

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    std::shared_ptr<StagedRun> run =
        StagedRun::Find(ctx->cancellation_manager());
    if (run == nullptr) {
      Take(ctx, buffer, nullptr, std::move(done));
      return;
    }
    StagedRun* const waiting = run.get();
    waiting->AwaitAdmission(
        ctx->cancellation_manager(),
        [this, ctx, buffer, run = std::move(run),
         done = std::move(done)](const Status& status) mutable {
          if (status.ok()) {
            Take(ctx, buffer, std::move(run), std::move(done));
          } else {
            ctx->SetStatus(status);
            done();
          }
        });
  }

  // `run` is the run of another stage that takes the record, or null.
  void Take(OpKernelContext* ctx, TensorBuffer* buffer,
            std::shared_ptr<StagedRun> run, DoneCallback done) const {
    const StagedRun* const taker = run.get();
    buffer->TakeAsync(
        ctx->cancellation_manager(),
        [this, ctx, buffer, run = std::move(run), done = std::move(done)](
            const Status& status, TensorBuffer::Taken taken) mutable {
          if (run != nullptr && taken.reads != nullptr &&
              !RollBack().Absorb(taken.reads, run->reads())) {
            // It has become stale on its way; the next one has the same elements.
            Take(ctx, buffer, std::move(run), std::move(done));
            return;
          }
          const bool is_stale = run != nullptr && run->IsStale();
          if (status.ok() && !is_stale) {
            Use(ctx, std::move(taken.record), std::move(done));
          } else if (run == nullptr) {
            ctx->SetStatus(status);
            done();
          } else {
            Fail(ctx, std::move(run), status, std::move(done));
          }
        },
        taker);
  }

  void Use(OpKernelContext* ctx, TensorBuffer::Record record,
           DoneCallback done) const {
    RecordMark mark = RemoveMark(&record);
    if (mark.kept_free.empty()) {
      ctx->SetStatus(SetOutputs(ctx, std::move(record)));
      done();
      return;
    }
    // There may be no memory yet, and this thread may be one that gives it back.
    Env::Default()->SchedClosure([this, ctx, mark = std::move(mark),
                                  record = std::move(record),
                                  done = std::move(done)]() mutable {
      Status status = mark.by->Deliver(*ctx, &record);
      mark = {};
      if (status.ok()) status = SetOutputs(ctx, std::move(record));
      ctx->SetStatus(status);
      done();
    });
  }

  // This thread may be one that must not wait.
  void Fail(OpKernelContext* ctx, std::shared_ptr<StagedRun> run,
            const Status& status, DoneCallback done) const {
    Env::Default()->SchedClosure(
        [ctx, run = std::move(run), status, done = std::move(done)] {
          Status failure = status;
          if (run->IsStale()) {
            run->AwaitReads();
            failure = run->StaleStatus();
          } else if (!ctx->cancellation_manager()->IsCancelled()) {
            run->Fail(status);
          }
          ctx->SetStatus(failure);
          done();
        });
  }

  // Checks the types of the record, because another op, the put, chose them.
  Status SetOutputs(OpKernelContext* ctx, TensorBuffer::Record record) const {
    bool fits = static_cast<int>(record.size()) ==
                num_tensors_ + shares_->num_tensors();
    for (int i = 0; fits && i < num_tensors_; ++i) {
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
    Tensor shares = shares_->RemoveFrom(&record);
    if (!on_cpu_) TF_RETURN_IF_ERROR(AwaitContent(record, *ctx->device()));
    if (loan_ != nullptr) TF_RETURN_IF_ERROR(loan_->Lend(ctx, &record));
    for (int i = 0; i < num_tensors_; ++i) {
      ctx->set_output(i, std::move(record[i]));
    }
    if (gives_shares_) ctx->set_output(num_tensors_, std::move(shares));
    return OkStatus();
  }

  const bool on_cpu_;
  // Whether the last output has the shares of further devices.
  bool gives_shares_ = false;
  // Of a record, without its shares.
  int num_tensors_ = 0;
  std::unique_ptr<RecordShares> shares_;
  // Null if the record is in the memory of this kernel's device.
  std::unique_ptr<RecordLoan> loan_;
};

void Cancel(OpKernelContext* ctx, TensorBuffer* buffer) { buffer->Cancel(); }

void Resume(OpKernelContext* ctx, TensorBuffer* buffer) {
  // Elsewhere, the worker knows its staged runs (runtime/worker_runs.h).
  if (ResumedStage() != nullptr &&
      absl::StartsWith(ctx->session_handle(), "direct")) {
    *ResumedStage() = core::WeakPtr<Stage>(buffer);
  }
  buffer->Resume();
}

void Close(OpKernelContext* ctx, TensorBuffer* buffer) {
  const Tensor& code = ctx->input(0);
  const Tensor& message = ctx->input(1);
  OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(code.shape()),
              errors::InvalidArgument("error_code must be a scalar, got shape ",
                                      code.shape().DebugString(), "."));
  OP_REQUIRES(
      ctx, TensorShapeUtils::IsScalar(message.shape()),
      errors::InvalidArgument("error_message must be a scalar, got shape ",
                              message.shape().DebugString(), "."));
  buffer->Close(Status(static_cast<absl::StatusCode>(code.scalar<int32>()()),
                       message.scalar<tstring>()()));
}

template <typename T>
void SetScalar(OpKernelContext* ctx, T value) {
  Tensor* output = nullptr;
  OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &output));
  output->scalar<T>()() = std::move(value);
}

void Discard(OpKernelContext* ctx, TensorBuffer* buffer) {
  SetScalar(ctx, buffer->Discard());
}

void Size(OpKernelContext* ctx, TensorBuffer* buffer) {
  SetScalar(ctx, buffer->Size());
}

void Stats(OpKernelContext* ctx, TensorBuffer* buffer) {
  SetScalar(ctx, tstring(buffer->GetStats().SerializeAsString()));
}

// Records are in the memory of the device of the Put and the Take, apart from
// what the attributes of these say. The control ops run on the CPU where
// SmartStage's passes have seen the graph (graph/place/stage_delivery.h);
// elsewhere their inputs and outputs are in host memory, as the last argument
// says.
#define REGISTER_STAGE_KERNEL(op, kernel, ...)                  \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU), kernel); \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_GPU) __VA_ARGS__, kernel)

REGISTER_STAGE_KERNEL(kPutOp, TensorBufferPutOp);
REGISTER_STAGE_KERNEL(kTakeOp, TensorBufferTakeOp);
REGISTER_STAGE_KERNEL(kCancelOp, BufferKernel<Cancel>);
REGISTER_STAGE_KERNEL(kResumeOp, BufferKernel<Resume>);
// clang-format off
REGISTER_STAGE_KERNEL(kCloseOp, BufferKernel<Close>,
                      .HostMemory("error_code").HostMemory("error_message"));
REGISTER_STAGE_KERNEL(kDiscardOp, BufferKernel<Discard>,
                      .HostMemory("discarded"));
REGISTER_STAGE_KERNEL(kSizeOp, BufferKernel<Size>, .HostMemory("size"));
REGISTER_STAGE_KERNEL(kStatsOp, BufferKernel<Stats>, .HostMemory("stats"));
// clang-format on

#undef REGISTER_STAGE_KERNEL

}  // namespace
}  // namespace staging
}  // namespace tensorflow
