// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/saved_state.h"

#include <cstdint>
#include <limits>

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
constexpr char kOutcomes[] = "outcomes";
constexpr char kKind[] = "kind";
constexpr char kSize[] = "size";
constexpr char kCode[] = "code";
constexpr char kMessage[] = "message";
// Only checkpoints from before the ledger have it.
constexpr char kStages[] = "stages";

// Kinds of outcomes.
constexpr int64_t kElement = 0;
constexpr int64_t kEnd = 1;
constexpr int64_t kError = 2;

constexpr int64_t kLargestCode = 16;
// Outcomes, and components of an element.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// One entry for each outcome, since an entry has at most 2 GB.
std::string OutcomeName(int64_t i) {
  return absl::StrCat(kName, "/outcome/", i);
}

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

Status WriteElement(const std::string& name, const std::vector<Tensor>& element,
                    data::IteratorStateWriter* writer) {
  TF_RETURN_IF_ERROR(
      writer->WriteScalar(name, kSize, static_cast<int64_t>(element.size())));
  for (size_t i = 0; i < element.size(); ++i) {
    const Status status = CheckCanBeSaved(element[i]);
    if (!status.ok()) {
      return errors::InvalidArgument(
          "An element that was read ahead cannot be saved: its component ", i,
          " ", status.message(),
          ". Do not save the position of this iterator, or do not read it "
          "ahead.");
    }
    TF_RETURN_IF_ERROR(writer->WriteTensor(name, TensorKey(i), element[i]));
  }
  return OkStatus();
}

Status WriteOutcome(const std::string& name, const Outcome& outcome,
                    data::IteratorStateWriter* writer) {
  const int64_t kind = !outcome.status.ok() ? kError
                       : outcome.is_end     ? kEnd
                                            : kElement;
  TF_RETURN_IF_ERROR(writer->WriteScalar(name, kKind, kind));
  if (kind == kElement) return WriteElement(name, outcome.element, writer);
  if (kind == kEnd) return OkStatus();
  TF_RETURN_IF_ERROR(writer->WriteScalar(
      name, kCode, static_cast<int64_t>(outcome.status.raw_code())));
  return writer->WriteScalar(name, kMessage, tstring(outcome.status.message()));
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

// Reads a number between 0 and `largest`.
Status ReadNumber(data::IteratorStateReader* reader, const std::string& name,
                  const std::string& key, int64_t largest, int64_t* number) {
  TF_RETURN_IF_ERROR(ReadValue(reader, name, key, number));
  if (*number >= 0 && *number <= largest) return OkStatus();
  return errors::InvalidArgument("The checkpoint is damaged: '", key,
                                 "' of the entry '", name,
                                 "' of a position is ", *number,
                                 "; it must be between 0 and ", largest, ".");
}

Status ReadOutcome(const std::string& name, data::IteratorStateReader* reader,
                   Outcome* outcome) {
  int64_t kind = 0;
  TF_RETURN_IF_ERROR(ReadNumber(reader, name, kKind, kError, &kind));
  if (kind == kEnd) {
    outcome->is_end = true;
  } else if (kind == kError) {
    int64_t code = 0;
    tstring message;
    TF_RETURN_IF_ERROR(ReadNumber(reader, name, kCode, kLargestCode, &code));
    TF_RETURN_IF_ERROR(ReadValue(reader, name, kMessage, &message));
    outcome->status =
        Status(static_cast<absl::StatusCode>(code), std::string(message));
  } else {
    int64_t size = 0;
    TF_RETURN_IF_ERROR(ReadNumber(reader, name, kSize, kMost, &size));
    for (int64_t i = 0; i < size; ++i) {
      TF_RETURN_IF_ERROR(reader->ReadTensor(name, TensorKey(i),
                                            &outcome->element.emplace_back()));
    }
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
      kName, kOutcomes, static_cast<int64_t>(state.outcomes.size())));
  for (size_t i = 0; i < state.outcomes.size(); ++i) {
    TF_RETURN_IF_ERROR(
        WriteOutcome(OutcomeName(i), *state.outcomes[i], writer));
  }
  return OkStatus();
}

Status Read(data::IteratorStateReader* reader, SavedState* state) {
  if (reader->Contains(kName, kStages)) {
    return errors::InvalidArgument(
        "An earlier version of tf.staging has written this checkpoint of an "
        "iterator. This version cannot read what waited in its stages: restore "
        "only the variables.");
  }
  tstring initializer;
  TF_RETURN_IF_ERROR(ReadValue(reader, kName, kInitializer, &initializer));
  state->initializer = std::string(initializer);
  int64_t outcomes = 0;
  TF_RETURN_IF_ERROR(ReadNumber(reader, kName, kOutcomes, kMost, &outcomes));
  for (int64_t i = 0; i < outcomes; ++i) {
    auto outcome = std::make_shared<Outcome>();
    TF_RETURN_IF_ERROR(ReadOutcome(OutcomeName(i), reader, outcome.get()));
    state->outcomes.push_back(std::move(outcome));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
