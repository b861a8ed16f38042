// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/buffer/step_delivery.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow_staging/core/records/session_device.h"

namespace tensorflow {
namespace staging {
namespace {

// The last tensor of a record that was delivered. No other code can make one,
// so no graph can claim that a tensor of the host is in a GPU's memory.
struct Mark {
  std::shared_ptr<const StepDelivery> by;

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

}  // namespace

StepDelivery::StepDelivery(std::string device, std::vector<int> indices,
                           std::vector<DeviceShare> shares)
    : layout_{std::move(device), indices},
      upload_(indices),
      shares_(shares),
      copied_(AllTensors(indices, shares)) {}

bool StepDelivery::Wants(int index) const {
  return absl::c_linear_search(layout_.on_device, index);
}

bool StepDelivery::Fits(const std::vector<Tensor>& record) const {
  return absl::c_all_of(copied_, [&record](int index) {
    return index < static_cast<int>(record.size()) &&
           DataTypeCanUseMemcpy(record[index].dtype());
  });
}

Status StepDelivery::Deliver(const OpKernelContext& ctx,
                             std::vector<Tensor>* record) const {
  Device* gpu = nullptr;
  TF_RETURN_IF_ERROR(
      FindSessionDevice(ctx, "The device of the step", layout_.device, &gpu));
  std::vector<Tensor> shares;
  TF_RETURN_IF_ERROR(shares_.Queue(ctx, *record, &shares));
  TF_RETURN_IF_ERROR(upload_.Queue(gpu, record));
  absl::c_move(shares, std::back_inserter(*record));
  Tensor mark(DT_VARIANT, TensorShape({}));
  mark.scalar<Variant>()() = Mark{shared_from_this()};
  record->push_back(std::move(mark));
  return OkStatus();
}

std::shared_ptr<const StepDelivery> RemoveMark(std::vector<Tensor>* record) {
  if (record->empty() || record->back().dtype() != DT_VARIANT ||
      record->back().dims() != 0) {
    return nullptr;
  }
  const Mark* const mark = record->back().scalar<Variant>()().get<Mark>();
  if (mark == nullptr) return nullptr;
  std::shared_ptr<const StepDelivery> by = mark->by;
  record->pop_back();
  return by;
}

}  // namespace staging
}  // namespace tensorflow
