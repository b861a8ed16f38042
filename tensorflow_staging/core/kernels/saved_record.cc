// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/saved_record.h"

#include <cstdint>
#include <utility>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns whether a checkpoint with `variant` could be read again.
bool SurvivesEncoding(const Variant& variant) {
  VariantTensorData data;
  variant.Encode(&data);
  data.set_type_name(variant.TypeName());
  VariantTensorDataProto proto;
  data.ToProto(&proto);
  Variant read = proto;
  return DecodeUnaryVariant(&read);
}

}  // namespace

constexpr char SavedRecord::kTypeName[];

// The first tensor holds the names: that of the stage, and those of the
// tensors, which follow.
void SavedRecord::Encode(VariantTensorData* data) const {
  data->set_type_name(TypeName());
  Tensor names(DT_STRING,
               TensorShape({static_cast<int64_t>(tensor_names.size()) + 1}));
  auto flat = names.vec<tstring>();
  flat(0) = stage;
  for (size_t i = 0; i < tensor_names.size(); ++i)
    flat(i + 1) = tensor_names[i];
  *data->add_tensors() = std::move(names);
  for (const Tensor& tensor : tensors) *data->add_tensors() = tensor;
}

bool SavedRecord::Decode(const VariantTensorData& data) {
  if (data.tensors_size() < 1) return false;
  const Tensor& names = data.tensors(0);
  if (names.dtype() != DT_STRING || names.dims() != 1 ||
      names.NumElements() != data.tensors_size()) {
    return false;
  }
  const auto flat = names.vec<tstring>();
  stage = flat(0);
  tensor_names.clear();
  tensors.clear();
  for (int i = 1; i < data.tensors_size(); ++i) {
    tensor_names.emplace_back(flat(i));
    tensors.push_back(data.tensors(i));
  }
  return true;
}

std::string SavedRecord::DebugString() const {
  return strings::StrCat(
      "a record of stage '", stage,
      "', which can only be restored into a session with that stage");
}

Status CheckCanBeSaved(const Tensor& tensor) {
  if (tensor.dtype() == DT_RESOURCE) {
    return errors::InvalidArgument("is a handle to a resource");
  }
  if (tensor.dtype() != DT_VARIANT) return OkStatus();
  const auto elements = tensor.flat<Variant>();
  for (int64_t i = 0; i < elements.size(); ++i) {
    if (elements(i).is_empty() || SurvivesEncoding(elements(i))) continue;
    return errors::InvalidArgument("holds a variant of type ",
                                   elements(i).TypeName(),
                                   ", which has no serialized form");
  }
  return OkStatus();
}

REGISTER_UNARY_VARIANT_DECODE_FUNCTION(SavedRecord, SavedRecord::kTypeName);

}  // namespace staging
}  // namespace tensorflow
