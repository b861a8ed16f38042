// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_delivery.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/records/owned_tensor.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {
namespace {

// The last tensor of a record. No other code can make one, so no graph can claim
// that a tensor of the host is in a GPU's memory.
struct Delivered : RecordMark {
  std::string TypeName() const { return "tensorflow::staging::Delivered"; }
  void Encode(VariantTensorData* data) const {}
  bool Decode(const VariantTensorData& data) { return false; }
};

std::set<int> AllTensors(const std::vector<int>& indices,
                         const std::vector<DeviceShare>& shares) {
  std::set<int> all(indices.begin(), indices.end());
  for (const DeviceShare& share : shares) {
    all.insert(share.tensors.begin(), share.tensors.end());
  }
  return all;
}

void AddMark(RecordMark mark, std::vector<Tensor>* record) {
  Tensor tensor(DT_VARIANT, TensorShape({}));
  tensor.scalar<Variant>()() = Delivered{std::move(mark)};
  record->push_back(std::move(tensor));
}

}  // namespace

RecordDelivery::RecordDelivery(std::string device, std::vector<int> indices,
                               std::vector<DeviceShare> shares)
    : layout_{std::move(device), indices},
      shared_(shares),
      upload_(indices),
      shares_(shares),
      copied_(AllTensors(indices, shares)) {}

std::vector<DeviceShare> RecordDelivery::Destinations() const {
  std::vector<DeviceShare> all = {{layout_.device, layout_.on_device}};
  absl::c_copy(shared_, std::back_inserter(all));
  return all;
}

bool RecordDelivery::Wants(int index) const {
  return absl::c_linear_search(layout_.on_device, index);
}

bool RecordDelivery::Fits(const std::vector<Tensor>& record) const {
  return absl::c_all_of(copied_, [&record](int index) {
    return index < static_cast<int>(record.size()) &&
           DataTypeCanUseMemcpy(record[index].dtype());
  });
}

Status RecordDelivery::Deliver(const OpKernelContext& ctx, IfFull if_full,
                               std::vector<Tensor>* record) const {
  DeviceBase* gpu = ctx.device();
  if (gpu->name() != layout_.device) {
    Device* found = nullptr;
    TF_RETURN_IF_ERROR(FindSessionDevice(ctx, "The device of the step",
                                         layout_.device, &found));
    gpu = found;
  }
  std::vector<Tensor> shares;
  TF_RETURN_IF_ERROR(shares_.Queue(ctx, if_full, *record, &shares));
  TF_RETURN_IF_ERROR(upload_.Queue(gpu, if_full, record));
  absl::c_move(shares, std::back_inserter(*record));
  return OkStatus();
}

Status RecordDelivery::DeliverOrKeep(const OpKernelContext& ctx,
                                     std::vector<Tensor>* record) const {
  std::vector<Tensor> delivered = *record;
  const Status status = Deliver(ctx, IfFull::kGiveUp, &delivered);
  if (status.ok()) {
    record->swap(delivered);
    return status;
  }
  Own(record);
  RecordMark mark = {shared_from_this(), {upload_.KeepOneFree()}};
  shares_.KeepOneFree(&mark.kept_free);
  AddMark(std::move(mark), record);
  return status;
}

void RecordDelivery::Mark(std::vector<Tensor>* record) const {
  AddMark({shared_from_this()}, record);
}

void RecordDelivery::Own(std::vector<Tensor>* record) const {
  for (const int i : copied_) {
    (*record)[i] = OwnedTensor(std::move((*record)[i]));
  }
}

RecordMark RemoveMark(std::vector<Tensor>* record) {
  if (record->empty() || record->back().dtype() != DT_VARIANT ||
      record->back().dims() != 0) {
    return {};
  }
  const auto* const found = record->back().scalar<Variant>()().get<Delivered>();
  if (found == nullptr) return {};
  RecordMark mark = *found;
  record->pop_back();
  return mark;
}

}  // namespace staging
}  // namespace tensorflow
