// SPDX-License-Identifier: Apache-2.0
//
// The kernels of iterators, in the place of TensorFlow's, since theirs have a lower
// priority. They do what the hooks of runtime-iterator-staged-reads.patch do in the
// fork, and leave all else to the iterator.

#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/data/dataset_utils.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"
#include "tensorflow/core/kernels/data/optional_ops.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/iterator_changes.h"
#include "tensorflow_staging/core/sources/iterator_reads.h"
#include "tensorflow_staging/core/sources/iterator_saves.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/plugin/known_iterators.h"
#include "tensorflow_staging/plugin/turn.h"

namespace tensorflow {
namespace staging {
namespace {

using IteratorPtr = core::RefCountPtr<data::IteratorResource>;

// Whether a read may have to do with a stage. Otherwise TensorFlow's own kernel
// does all.
bool MayBeReadAhead() { return Stage::AnyExists() || Source::AnyIsReadAhead(); }

Status Read(OpKernelContext* ctx, std::vector<Tensor>* element, bool* is_end) {
  IteratorPtr iterator;
  TF_RETURN_IF_ERROR(LookUpIterator(ctx, 0, &iterator));
  IteratorRead read(ctx, iterator.get());
  TF_RETURN_IF_ERROR(read.Await());
  read.Begin();
  Status status;
  if (read.Answers(element, is_end, &status)) return status;
  status = iterator->GetNext(ctx, element, is_end);
  read.End(element, is_end, &status);
  return status;
}

// The types and shapes of the elements that the op yields.
struct ElementSpec {
  explicit ElementSpec(OpKernelConstruction* ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("output_types", &types));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("output_shapes", &shapes));
  }

  Status Check(const std::vector<Tensor>& element) const {
    TF_RETURN_IF_ERROR(data::VerifyTypesMatch(types, element));
    return data::VerifyShapesCompatible(shapes, element);
  }

  DataTypeVector types;
  std::vector<PartialTensorShape> shapes;
};

class GetNextKernel : public data::IteratorGetNextOp {
 public:
  explicit GetNextKernel(OpKernelConstruction* ctx)
      : IteratorGetNextOp(ctx), spec_(ctx) {}

 protected:
  Status DoCompute(OpKernelContext* ctx) override {
    if (!MayBeReadAhead()) return IteratorGetNextOp::DoCompute(ctx);
    std::vector<Tensor> element;
    bool is_end = false;
    TF_RETURN_IF_ERROR(Read(ctx, &element, &is_end));
    if (is_end) return errors::OutOfRange("End of sequence");
    TF_RETURN_IF_ERROR(spec_.Check(element));
    for (size_t i = 0; i < element.size(); ++i) {
      ctx->set_output(static_cast<int>(i), element[i]);
    }
    return OkStatus();
  }

 private:
  const ElementSpec spec_;
};

class GetNextAsOptionalKernel : public data::IteratorGetNextAsOptionalOp {
 public:
  explicit GetNextAsOptionalKernel(OpKernelConstruction* ctx)
      : IteratorGetNextAsOptionalOp(ctx), spec_(ctx) {}

 protected:
  Status DoCompute(OpKernelContext* ctx) override {
    if (!MayBeReadAhead()) return IteratorGetNextAsOptionalOp::DoCompute(ctx);
    std::vector<Tensor> element;
    bool is_end = false;
    TF_RETURN_IF_ERROR(Read(ctx, &element, &is_end));
    if (is_end) return data::WriteOptionalNoneToOutput(ctx, 0);
    TF_RETURN_IF_ERROR(spec_.Check(element));
    return data::WriteOptionalWithValueToOutput(ctx, 0, std::move(element));
  }

 private:
  const ElementSpec spec_;
};

class MakeIteratorKernel : public data::MakeIteratorOp {
 public:
  using MakeIteratorOp::MakeIteratorOp;

 protected:
  Status DoCompute(OpKernelContext* ctx) override {
    IteratorPtr iterator;
    TF_RETURN_IF_ERROR(LookUpIterator(ctx, 1, &iterator));
    {
      Turn turn(Source::Of(iterator.get()));
      TF_RETURN_IF_ERROR(turn.Await(ctx->cancellation_manager()));
      IteratorChange change = IteratorChange::Initialise(iterator.get(), ctx);
      TF_RETURN_IF_ERROR(change.Prepare());
      TF_RETURN_IF_ERROR(MakeIteratorOp::DoCompute(ctx));
      if (change.position() != nullptr) {
        TF_RETURN_IF_ERROR(iterator->Restore(ctx, change.position()));
      }
      change.Apply();
      change.Finish();
    }
    return OkStatus();
  }
};

// A kernel that waits for the turn of an iterator. A read in progress may need the
// threads on which kernels run, so it waits on another thread.
class TurnKernel : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) final {
    ctx->env()->SchedClosure([this, ctx, done = std::move(done)]() {
      ctx->SetStatus(DoCompute(ctx));
      done();
    });
  }

 protected:
  virtual Status DoCompute(OpKernelContext* ctx) = 0;
};

class SerializeKernel : public TurnKernel {
 public:
  explicit SerializeKernel(OpKernelConstruction* ctx) : TurnKernel(ctx) {
    if (!ctx->HasAttr(data::SerializeIteratorOp::kExternalStatePolicy)) return;
    int64_t policy = 0;
    OP_REQUIRES_OK(
        ctx,
        ctx->GetAttr(data::SerializeIteratorOp::kExternalStatePolicy, &policy));
    policy_ = data::ExternalStatePolicy(policy);
  }

 protected:
  Status DoCompute(OpKernelContext* ctx) override {
    IteratorPtr iterator;
    TF_RETURN_IF_ERROR(LookUpIterator(ctx, 0, &iterator));
    data::VariantTensorDataWriter writer;
    {
      IteratorSave save(iterator.get(), ctx);
      TF_RETURN_IF_ERROR(save.Await());
      save.Begin();
      TF_RETURN_IF_ERROR(save.Write(&writer));
      TF_RETURN_IF_ERROR(iterator->Save(ctx, policy_, &writer));
    }
    std::vector<std::unique_ptr<VariantTensorData>> entries;
    writer.ReleaseData(&entries);
    Tensor* position = nullptr;
    TF_RETURN_IF_ERROR(ctx->allocate_output(
        0, TensorShape({static_cast<int64_t>(entries.size())}), &position));
    auto elements = position->vec<Variant>();
    for (size_t i = 0; i < entries.size(); ++i) {
      data::IteratorStateVariant entry;
      TF_RETURN_IF_ERROR(
          entry.InitializeFromVariantData(std::move(entries[i])));
      elements(i) = std::move(entry);
    }
    return OkStatus();
  }

 private:
  data::ExternalStatePolicy policy_ = data::ExternalStatePolicy::POLICY_WARN;
};

class DeserializeKernel : public TurnKernel {
 public:
  using TurnKernel::TurnKernel;

 protected:
  Status DoCompute(OpKernelContext* ctx) override {
    IteratorPtr iterator;
    TF_RETURN_IF_ERROR(LookUpIterator(ctx, 0, &iterator));
    std::unique_ptr<data::IteratorStateReader> reader;
    TF_RETURN_IF_ERROR(MakeReader(ctx->input(1), &reader));
    Turn turn(Source::Of(iterator.get()));
    TF_RETURN_IF_ERROR(turn.Await(ctx->cancellation_manager()));
    IteratorChange change =
        IteratorChange::Restore(iterator.get(), ctx, reader.get());
    // Whether the iterator has a dataset is not known here. Without one, its
    // Restore fails, as without stages.
    if (change.IsHeld(/*is_initialised=*/true)) return OkStatus();
    TF_RETURN_IF_ERROR(change.Prepare());
    TF_RETURN_IF_ERROR(iterator->Restore(ctx, reader.get()));
    change.Apply();
    change.Finish();
    return OkStatus();
  }
};

// TensorFlow's kernels have 2 on CPUs and 1 on GPUs, or 0. The device with the higher
// one gets an op that may be on either.
constexpr int kPriorityOnCpu = 3;
constexpr int kPriorityOnGpu = 2;

#define REPLACE_ON_CPU(op, kernel) \
  REGISTER_KERNEL_BUILDER(         \
      Name(op).Device(DEVICE_CPU).Priority(kPriorityOnCpu), kernel)
#define REPLACE_ON_GPU(op, kernel) \
  REGISTER_KERNEL_BUILDER(         \
      Name(op).Device(DEVICE_GPU).Priority(kPriorityOnGpu), kernel)

REPLACE_ON_CPU("IteratorGetNext", GetNextKernel);
REPLACE_ON_GPU("IteratorGetNext", GetNextKernel);
REPLACE_ON_CPU("IteratorGetNextSync", GetNextKernel);
REPLACE_ON_GPU("IteratorGetNextSync", GetNextKernel);
REPLACE_ON_CPU("IteratorGetNextAsOptional", GetNextAsOptionalKernel);
REPLACE_ON_GPU("IteratorGetNextAsOptional", GetNextAsOptionalKernel);
REPLACE_ON_CPU("MakeIterator", MakeIteratorKernel);
REGISTER_KERNEL_BUILDER(Name("MakeIterator")
                            .Device(DEVICE_GPU)
                            .Priority(kPriorityOnGpu)
                            .HostMemory("dataset"),
                        MakeIteratorKernel);
REPLACE_ON_CPU("SerializeIterator", SerializeKernel);
REPLACE_ON_CPU("DeserializeIterator", DeserializeKernel);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
