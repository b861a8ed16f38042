// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/saved_state.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow {
namespace staging {
namespace {

// The entries of a position have names. Checkpoints outlive programs, so these
// names and keys must not change.
constexpr char kName[] = "staging";
constexpr char kInitializer[] = "initializer";
constexpr char kStages[] = "stages";
constexpr char kElements[] = "elements";
constexpr char kSize[] = "size";

// One entry for each record, since an entry has at most 2 GB.
std::string RecordName(int64_t stage, int64_t record) {
  return absl::StrCat(kName, "/", stage, "/", record);
}

std::string ElementName(int64_t element) {
  return absl::StrCat(kName, "/element/", element);
}

std::string StageKey(int64_t stage) { return absl::StrCat("stage_", stage); }
std::string CountKey(int64_t stage) { return absl::StrCat("records_", stage); }
std::string NameKey(int64_t i) { return absl::StrCat("name_", i); }
std::string TensorKey(int64_t i) { return absl::StrCat("tensor_", i); }

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

// Returns INVALID_ARGUMENT with a reason that completes "the tensor ...".
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

Status WriteTensors(const std::string& name, const std::vector<Tensor>& tensors,
                    data::IteratorStateWriter* writer) {
  TF_RETURN_IF_ERROR(
      writer->WriteScalar(name, kSize, static_cast<int64_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    TF_RETURN_IF_ERROR(writer->WriteTensor(name, TensorKey(i), tensors[i]));
  }
  return OkStatus();
}

// Reads a scalar. ReadScalar would end the process if the checkpoint had
// another tensor in its place.
template <typename T>
Status ReadValue(data::IteratorStateReader* reader, const std::string& name,
                 const std::string& key, T* value) {
  Tensor tensor;
  TF_RETURN_IF_ERROR(reader->ReadTensor(name, key, &tensor));
  constexpr DataType kType = DataTypeToEnum<T>::value;
  if (tensor.dtype() != kType || !TensorShapeUtils::IsScalar(tensor.shape())) {
    return errors::InvalidArgument(
        "The checkpoint is damaged: '", key, "' of the entry '", name,
        "' of a position is a tensor of ", DataTypeString(tensor.dtype()),
        " with shape ", tensor.shape().DebugString(), "; it must be a scalar ",
        DataTypeString(kType), ".");
  }
  *value = tensor.scalar<T>()();
  return OkStatus();
}

// Reads how many of something follow.
Status ReadCount(data::IteratorStateReader* reader, const std::string& name,
                 const std::string& key, int64_t* count) {
  TF_RETURN_IF_ERROR(ReadValue(reader, name, key, count));
  if (*count >= 0) return OkStatus();
  return errors::InvalidArgument(
      "The checkpoint is damaged: '", key, "' of the entry '", name,
      "' of a position is ", *count, "; it must be at least 0.");
}

Status ReadTensors(const std::string& name, data::IteratorStateReader* reader,
                   std::vector<Tensor>* tensors) {
  int64_t size = 0;
  TF_RETURN_IF_ERROR(ReadCount(reader, name, kSize, &size));
  for (int64_t i = 0; i < size; ++i) {
    TF_RETURN_IF_ERROR(
        reader->ReadTensor(name, TensorKey(i), &tensors->emplace_back()));
  }
  return OkStatus();
}

Status WriteRecord(const std::string& stage, const std::string& name,
                   const SavedRecord& record,
                   data::IteratorStateWriter* writer) {
  for (size_t i = 0; i < record.tensors.size(); ++i) {
    const std::string tensor = i < record.tensor_names.size()
                                   ? record.tensor_names[i]
                                   : absl::StrCat("number ", i);
    const Status status = CheckCanBeSaved(record.tensors[i]);
    if (!status.ok()) {
      return errors::InvalidArgument(
          "The records of stage '", stage, "' cannot be saved: the tensor '",
          tensor, "' ", status.message(),
          ". Keep it out of the stage with tf.train.mark_target_node(), or do "
          "not save the position of the stage's iterator.");
    }
    TF_RETURN_IF_ERROR(writer->WriteScalar(name, NameKey(i), tstring(tensor)));
  }
  return WriteTensors(name, record.tensors, writer);
}

Status ReadRecord(const std::string& name, data::IteratorStateReader* reader,
                  SavedRecord* record) {
  TF_RETURN_IF_ERROR(ReadTensors(name, reader, &record->tensors));
  for (size_t i = 0; i < record->tensors.size(); ++i) {
    tstring tensor;
    TF_RETURN_IF_ERROR(ReadValue(reader, name, NameKey(i), &tensor));
    record->tensor_names.push_back(tensor);
  }
  return OkStatus();
}

}  // namespace

bool HasSavedState(const data::IteratorStateReader& reader) {
  return reader.Contains(kName, kInitializer);
}

Status Write(const SavedState& state, data::IteratorStateWriter* writer) {
  TF_RETURN_IF_ERROR(
      writer->WriteScalar(kName, kInitializer, tstring(state.initializer)));
  TF_RETURN_IF_ERROR(writer->WriteScalar(
      kName, kStages, static_cast<int64_t>(state.records.size())));
  int64_t stage = 0;
  for (const auto& [name, records] : state.records) {
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(kName, StageKey(stage), tstring(name)));
    TF_RETURN_IF_ERROR(writer->WriteScalar(
        kName, CountKey(stage), static_cast<int64_t>(records.size())));
    for (size_t i = 0; i < records.size(); ++i) {
      TF_RETURN_IF_ERROR(
          WriteRecord(name, RecordName(stage, i), records[i], writer));
    }
    ++stage;
  }
  TF_RETURN_IF_ERROR(writer->WriteScalar(
      kName, kElements, static_cast<int64_t>(state.elements.size())));
  for (size_t i = 0; i < state.elements.size(); ++i) {
    TF_RETURN_IF_ERROR(WriteTensors(ElementName(i), state.elements[i], writer));
  }
  return OkStatus();
}

Status Read(data::IteratorStateReader* reader, SavedState* state) {
  tstring initializer;
  TF_RETURN_IF_ERROR(ReadValue(reader, kName, kInitializer, &initializer));
  state->initializer = std::string(initializer);
  int64_t stages = 0;
  TF_RETURN_IF_ERROR(ReadCount(reader, kName, kStages, &stages));
  for (int64_t stage = 0; stage < stages; ++stage) {
    tstring name;
    int64_t count = 0;
    TF_RETURN_IF_ERROR(ReadValue(reader, kName, StageKey(stage), &name));
    TF_RETURN_IF_ERROR(ReadCount(reader, kName, CountKey(stage), &count));
    std::vector<SavedRecord>& records = state->records[name];
    for (int64_t i = 0; i < count; ++i) {
      TF_RETURN_IF_ERROR(
          ReadRecord(RecordName(stage, i), reader, &records.emplace_back()));
    }
  }
  int64_t elements = 0;
  TF_RETURN_IF_ERROR(ReadCount(reader, kName, kElements, &elements));
  for (int64_t i = 0; i < elements; ++i) {
    TF_RETURN_IF_ERROR(
        ReadTensors(ElementName(i), reader, &state->elements.emplace_back()));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
