// SPDX-License-Identifier: Apache-2.0
//
// The kernels through which a saver keeps the records of a stage beside the
// positions of its iterators (graph/rewrite/checkpoint_nodes.h).

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/kernels/buffer_kernels.h"
#include "tensorflow_staging/core/kernels/hold_kernel.h"
#include "tensorflow_staging/core/kernels/record_copies.h"
#include "tensorflow_staging/core/kernels/saved_record.h"

namespace tensorflow {
namespace staging {
namespace {

using TensorBufferPauseOp =
    HoldKernel<&TensorBuffer::PauseAsync, &TensorBuffer::EndPause>;

// Returns the elements of the position of an iterator.
Status Elements(const Tensor& position, const std::string& node,
                std::vector<Variant>* elements) {
  if (position.dtype() != DT_VARIANT || position.dims() != 1) {
    return errors::InvalidArgument(
        "'", node,
        "' needs the position of an iterator, which is a vector of variants; "
        "it got ",
        position.DebugString(0), ".");
  }
  const auto flat = position.vec<Variant>();
  elements->assign(flat.data(), flat.data() + flat.size());
  return OkStatus();
}

Status SetPosition(OpKernelContext* ctx, std::vector<Variant> elements) {
  Tensor* position = nullptr;
  AllocatorAttributes attributes;
  attributes.set_on_host(true);
  TF_RETURN_IF_ERROR(ctx->allocate_output(
      0, TensorShape({static_cast<int64_t>(elements.size())}), &position,
      attributes));
  auto flat = position->vec<Variant>();
  for (size_t i = 0; i < elements.size(); ++i) {
    flat(i) = std::move(elements[i]);
  }
  return OkStatus();
}

class TensorBufferSaveOp : public AsyncBufferKernel {
 public:
  explicit TensorBufferSaveOp(OpKernelConstruction* ctx)
      : AsyncBufferKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kStageNameAttr, &stage_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kTensorNamesAttr, &tensor_names_));
    OP_REQUIRES_OK(ctx, RecordCopies::Read(*ctx, tensor_names_, &copies_));
  }

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    std::vector<Variant> elements;
    OP_REQUIRES_OK_ASYNC(ctx, Elements(ctx->input(0), name(), &elements), done);
    RecordCopies::Records records = buffer->Records();
    for (const TensorBuffer::Record& record : records) {
      OP_REQUIRES_OK_ASYNC(ctx, CheckSize(record), done);
    }
    if (copies_ == nullptr) {
      ctx->SetStatus(Save(ctx, std::move(elements), records));
      done();
      return;
    }
    copies_->ToHost(
        ctx, std::move(records),
        [this, ctx, elements = std::move(elements), done = std::move(done)](
            const Status& status, RecordCopies::Records copied) mutable {
          ctx->SetStatus(status.ok() ? Save(ctx, std::move(elements), copied)
                                     : status);
          done();
        });
  }

  // Sets the output to `elements`, and `records` behind them.
  Status Save(OpKernelContext* ctx, std::vector<Variant> elements,
              const RecordCopies::Records& records) const {
    for (const TensorBuffer::Record& record : records) {
      TF_RETURN_IF_ERROR(Check(record));
      elements.push_back(SavedRecord{stage_, tensor_names_, record});
    }
    return SetPosition(ctx, std::move(elements));
  }

  Status CheckSize(const TensorBuffer::Record& record) const {
    if (record.size() == tensor_names_.size()) return OkStatus();
    return errors::InvalidArgument("'", name(), "' names ",
                                   tensor_names_.size(),
                                   " tensors, but a record of stage '", stage_,
                                   "' has ", record.size(), ".");
  }

  Status Check(const TensorBuffer::Record& record) const {
    for (size_t i = 0; i < record.size(); ++i) {
      const Status status = CheckCanBeSaved(record[i]);
      if (status.ok()) continue;
      return errors::InvalidArgument(
          "The records of stage '", stage_, "' cannot be saved: the tensor '",
          tensor_names_[i], "' ", status.message(),
          ". Keep it out of the stage with tf.train.mark_target_node(), or do "
          "not save the position of the stage's iterator.");
    }
    return OkStatus();
  }

  std::string stage_;
  std::vector<std::string> tensor_names_;
  // Null if the records are in host memory.
  std::unique_ptr<RecordCopies> copies_;
};

class TensorBufferRestoreOp : public AsyncBufferKernel {
 public:
  explicit TensorBufferRestoreOp(OpKernelConstruction* ctx)
      : AsyncBufferKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kStageNameAttr, &stage_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kTensorNamesAttr, &tensor_names_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kDtypesAttr, &dtypes_));
    OP_REQUIRES(ctx, dtypes_.size() == tensor_names_.size(),
                errors::InvalidArgument("'", name(), "' has ", dtypes_.size(),
                                        " dtypes for ", tensor_names_.size(),
                                        " tensors."));
    OP_REQUIRES_OK(ctx, RecordCopies::Read(*ctx, tensor_names_, &copies_));
  }

 private:
  void RunAsync(OpKernelContext* ctx, TensorBuffer* buffer,
                DoneCallback done) override {
    std::vector<Variant> elements;
    OP_REQUIRES_OK_ASYNC(ctx, Elements(ctx->input(0), name(), &elements), done);
    RecordCopies::Records records;
    for (const Variant& element : elements) {
      const SavedRecord* saved = element.get<SavedRecord>();
      if (saved == nullptr || saved->stage != stage_) continue;
      records.emplace_back();
      OP_REQUIRES_OK_ASYNC(ctx, Arrange(*saved, &records.back()), done);
    }
    if (copies_ == nullptr) {
      ctx->SetStatus(buffer->Restore(std::move(records)));
      done();
      return;
    }
    copies_->ToDevice(ctx, std::move(records),
                      [ctx, buffer, done = std::move(done)](
                          const Status& status, RecordCopies::Records copied) {
                        ctx->SetStatus(status.ok()
                                           ? buffer->Restore(std::move(copied))
                                           : status);
                        done();
                      });
  }

  // Sets `*record` to the tensors of `saved`, in the order of this stage.
  Status Arrange(const SavedRecord& saved, TensorBuffer::Record* record) const {
    std::map<std::string, const Tensor*> by_name;
    for (size_t i = 0; i < saved.tensor_names.size(); ++i) {
      by_name[saved.tensor_names[i]] = &saved.tensors[i];
    }
    for (size_t i = 0; i < tensor_names_.size(); ++i) {
      const auto it = by_name.find(tensor_names_[i]);
      if (it == by_name.end() || it->second->dtype() != dtypes_[i]) {
        return DiffersStatus(saved);
      }
      record->push_back(*it->second);
    }
    return by_name.size() == tensor_names_.size() ? OkStatus()
                                                  : DiffersStatus(saved);
  }

  Status DiffersStatus(const SavedRecord& saved) const {
    std::vector<std::string> kept, carried;
    for (size_t i = 0; i < saved.tensor_names.size(); ++i) {
      kept.push_back(strings::StrCat(saved.tensor_names[i], " (",
                                     DataTypeString(saved.tensors[i].dtype()),
                                     ")"));
    }
    for (size_t i = 0; i < tensor_names_.size(); ++i) {
      carried.push_back(strings::StrCat(tensor_names_[i], " (",
                                        DataTypeString(dtypes_[i]), ")"));
    }
    return errors::InvalidArgument(
        "The checkpoint has records of stage '", stage_,
        "' that do not fit the stage of this session. They hold ",
        absl::StrJoin(kept, ", "), "; the stage carries ",
        absl::StrJoin(carried, ", "),
        ". Restore them with the model and the settings of SmartStage that "
        "saved them, or restore only the variables.");
  }

  std::string stage_;
  std::vector<std::string> tensor_names_;
  DataTypeVector dtypes_;
  // Null if the stage's records are in host memory.
  std::unique_ptr<RecordCopies> copies_;
};

class StagedIteratorPositionOp : public OpKernel {
 public:
  explicit StagedIteratorPositionOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    std::vector<std::string> stages;
    OP_REQUIRES_OK(ctx, ctx->GetAttr(kStagesAttr, &stages));
    stages_.insert(stages.begin(), stages.end());
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<Variant> elements;
    OP_REQUIRES_OK(ctx, Elements(ctx->input(0), name(), &elements));
    std::vector<Variant> position;
    for (Variant& element : elements) {
      const SavedRecord* saved = element.get<SavedRecord>();
      OP_REQUIRES(
          ctx, saved == nullptr || stages_.count(saved->stage) > 0,
          errors::InvalidArgument(
              "The checkpoint has records of stage '",
              saved == nullptr ? "" : saved->stage,
              "', but in this session the stages of the iterator are: ",
              absl::StrJoin(stages_, ", "),
              ". Restore it with the model and the settings of SmartStage that "
              "saved it, or restore only the variables."));
      if (saved == nullptr) position.push_back(std::move(element));
    }
    OP_REQUIRES_OK(ctx, SetPosition(ctx, std::move(position)));
  }

 private:
  std::set<std::string> stages_;
};

REGISTER_KERNEL_BUILDER(Name(kPauseOp).Device(DEVICE_CPU), TensorBufferPauseOp);
REGISTER_KERNEL_BUILDER(Name(kPauseOp).Device(DEVICE_GPU), TensorBufferPauseOp);
REGISTER_KERNEL_BUILDER(Name(kSaveOp).Device(DEVICE_CPU), TensorBufferSaveOp);
REGISTER_KERNEL_BUILDER(
    Name(kSaveOp).Device(DEVICE_GPU).HostMemory("position").HostMemory("saved"),
    TensorBufferSaveOp);
REGISTER_KERNEL_BUILDER(Name(kRestoreOp).Device(DEVICE_CPU),
                        TensorBufferRestoreOp);
REGISTER_KERNEL_BUILDER(Name(kRestoreOp).Device(DEVICE_GPU).HostMemory("saved"),
                        TensorBufferRestoreOp);
REGISTER_KERNEL_BUILDER(Name(kIteratorPositionOp).Device(DEVICE_CPU),
                        StagedIteratorPositionOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
