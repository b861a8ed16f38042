// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_shares.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {
namespace {

// The shares of one record. No other code can make one, so no graph can claim that
// a tensor is in the memory of an accelerator.
struct Shares {
  // Of each tensor, in the record.
  std::shared_ptr<const std::vector<int>> indices;
  std::vector<Tensor> tensors;

  std::string TypeName() const { return "tensorflow::staging::Shares"; }
  void Encode(VariantTensorData* data) const {}
  bool Decode(const VariantTensorData& data) { return false; }
};

}  // namespace

Status ReadSharesOfPut(const OpKernelConstruction& ctx,
                       std::vector<DeviceShare>* shares) {
  TF_RETURN_IF_ERROR(ReadShares(ctx.def(), ctx.num_inputs(), shares));
  if (!shares->empty() && ctx.device_type() == DEVICE_CPU) {
    return errors::InvalidArgument(
        kShareDevicesAttr, " of ", ctx.def().name(),
        " is set on a CPU; it is for Puts on accelerators.");
  }
  for (const DeviceShare& share : *shares) {
    for (const int i : share.tensors) {
      const DataType dtype = ctx.input_type(i);
      if (ctx.input_memory_types()[i] == HOST_MEMORY &&
          DataTypeCanUseMemcpy(dtype)) {
        continue;
      }
      return errors::InvalidArgument(
          kShareTensorsAttr, " of ", ctx.def().name(), " contains ", i,
          ", but input ", i, " (", DataTypeString(dtype),
          ") is not a tensor in host memory that can be copied as bytes.");
    }
  }
  return OkStatus();
}

Status ReadSharesOfTake(const OpKernelConstruction& ctx,
                        std::vector<DeviceShare>* shares, bool* gives) {
  *gives = false;
  TryGetNodeAttr(ctx.def(), kGivesSharesAttr, gives);
  const int last = ctx.num_outputs() - 1;
  if (*gives && (last < 0 || ctx.output_type(last) != DT_VARIANT ||
                 ctx.output_memory_types()[last] != HOST_MEMORY)) {
    return errors::InvalidArgument(
        kGivesSharesAttr, " of ", ctx.def().name(),
        " is set, but its last output is not a variant in host memory.");
  }
  TF_RETURN_IF_ERROR(ReadShares(ctx.def(), *gives ? last : last + 1, shares));
  if (*gives && shares->empty()) {
    return errors::InvalidArgument(kGivesSharesAttr, " of ", ctx.def().name(),
                                   " is set, but ", kShareDevicesAttr,
                                   " names no device.");
  }
  if (!shares->empty() && ctx.device_type() == DEVICE_CPU) {
    return errors::InvalidArgument(
        kShareDevicesAttr, " of ", ctx.def().name(),
        " is set on a CPU; it is for Takes on accelerators.");
  }
  for (const DeviceShare& share : *shares) {
    for (const int i : share.tensors) {
      if (DataTypeCanUseMemcpy(ctx.output_type(i))) continue;
      return errors::InvalidArgument(
          kShareTensorsAttr, " of ", ctx.def().name(), " contains ", i,
          ", but output ", i, " (", DataTypeString(ctx.output_type(i)),
          ") cannot be copied as bytes.");
    }
  }
  return OkStatus();
}

RecordShares::RecordShares(std::vector<DeviceShare> shares)
    : indices_(std::make_shared<std::vector<int>>()) {
  for (DeviceShare& share : shares) {
    absl::c_copy(share.tensors, std::back_inserter(*indices_));
    auto upload = std::make_unique<RecordUpload>(share.tensors);
    uploads_.push_back({std::move(share), std::move(upload)});
  }
}

Status RecordShares::Queue(const OpKernelContext& ctx, IfFull if_full,
                           const std::vector<Tensor>& record,
                           std::vector<Tensor>* copies) const {
  for (const OfDevice& of_device : uploads_) {
    Device* gpu = nullptr;
    TF_RETURN_IF_ERROR(FindSessionDevice(ctx, kShareDevicesAttr,
                                         of_device.share.device, &gpu));
    std::vector<Tensor> there = record;
    TF_RETURN_IF_ERROR(of_device.upload->Queue(gpu, if_full, &there));
    for (const int i : of_device.share.tensors) {
      copies->push_back(std::move(there[i]));
    }
  }
  return OkStatus();
}

Status RecordShares::Check(const OpKernelContext& ctx) const {
  Device* gpu = nullptr;
  for (const OfDevice& of_device : uploads_) {
    TF_RETURN_IF_ERROR(FindSessionDevice(ctx, kShareDevicesAttr,
                                         of_device.share.device, &gpu));
  }
  return OkStatus();
}

void RecordShares::KeepOneFree(std::vector<std::shared_ptr<void>>* kept) const {
  for (const OfDevice& of_device : uploads_) {
    kept->push_back(of_device.upload->KeepOneFree());
  }
}

Tensor RecordShares::RemoveFrom(std::vector<Tensor>* record) const {
  if (empty()) return Tensor();
  Shares shares;
  shares.indices = indices_;
  const auto begin = record->end() - indices_->size();
  shares.tensors.assign(std::make_move_iterator(begin),
                        std::make_move_iterator(record->end()));
  record->erase(begin, record->end());
  Tensor tensor(DT_VARIANT, TensorShape({}));
  tensor.scalar<Variant>()() = std::move(shares);
  return tensor;
}

Status TakeShare(const Tensor& shares, const std::vector<int>& indices,
                 const DeviceBase& device, std::vector<Tensor>* tensors) {
  const Shares* const found = shares.dtype() == DT_VARIANT && shares.dims() == 0
                                  ? shares.scalar<Variant>()().get<Shares>()
                                  : nullptr;
  if (found == nullptr) {
    return errors::InvalidArgument(
        "A tensor does not have the shares of a record, but is ",
        shares.DebugString(), ".");
  }
  KernelStream stream;
  TF_RETURN_IF_ERROR(KernelStream::Of(device, &stream));
  tensors->clear();
  for (const int index : indices) {
    for (size_t i = 0; i < found->tensors.size(); ++i) {
      const Tensor& tensor = found->tensors[i];
      // A tensor without elements has no memory.
      if ((*found->indices)[i] == index &&
          (tensor.NumElements() == 0 || IsLentTo(tensor, stream))) {
        tensors->push_back(tensor);
        break;
      }
    }
  }
  if (tensors->size() != indices.size()) {
    return errors::InvalidArgument(
        "The record was not copied to ", device.name(),
        " as the step expects it. If the graph has grown since the stage began "
        "to run, use a new session.");
  }
  return AwaitContent(*tensors, device);
}

}  // namespace staging
}  // namespace tensorflow
