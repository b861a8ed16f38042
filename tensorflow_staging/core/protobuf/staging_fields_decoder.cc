// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns true if `Message` is TensorFlow's stock class. Returns false in a
// build of the whole patched tree, where the class itself declares the fields.
template <typename Message>
bool FieldsAreUnknown() {
  constexpr int kFirstStagingField = 10001;
  static const bool unknown =
      Message::descriptor()->FindFieldByNumber(kFirstStagingField) == nullptr;
  return unknown;
}

template <typename Message>
const protobuf::UnknownFieldSet& UnknownFields(const Message& message) {
  static const auto* const reflection = Message::GetReflection();
  return reflection->GetUnknownFields(message);
}

// The parser leaves a field with a wrong wire type among the unknown fields.
template <typename Fields>
bool HasFieldOfWrongType(const Fields& fields) {
  const auto& unknown = UnknownFields(fields);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (Fields::descriptor()->FindFieldByNumber(unknown.field(i).number())) {
      return true;
    }
  }
  return false;
}

template <typename Message, typename Fields>
Status Read(const Message& message, Fields* fields) {
  fields->Clear();
  std::string bytes;
  if (FieldsAreUnknown<Message>()) {
    const auto& unknown = UnknownFields(message);
    if (unknown.empty()) return OkStatus();
    unknown.SerializeToString(&bytes);
  } else {
    message.SerializePartialToString(&bytes);
  }
  const bool well_formed =
      fields->ParseFromString(bytes) && !HasFieldOfWrongType(*fields);
  // Other unknown fields have no meaning here. Nested messages keep their
  // unknown fields, because these may be staging fields.
  fields->GetReflection()->MutableUnknownFields(fields)->Clear();
  if (well_formed) return OkStatus();
  fields->Clear();
  return errors::InvalidArgument(
      "The staging fields of ", Message::descriptor()->full_name(),
      " are malformed. Write them with the config protos of this build of "
      "TensorFlow.");
}

}  // namespace

Status DecodeConfigFields(const ConfigProto& message, ConfigFields* fields) {
  return Read(message, fields);
}

Status DecodeOptimizerFields(const OptimizerOptions& message,
                             OptimizerFields* fields) {
  TF_RETURN_IF_ERROR(Read(message, fields));
  if (fields->do_smart_stage_gpu()) {
    fields->set_do_smart_stage(true);
    fields->set_stage_subgraph_on_cpu(true);
  }
  return OkStatus();
}

Status DecodeRewriterFields(const RewriterConfig& message,
                            RewriterFields* fields) {
  return Read(message, fields);
}

Status DecodeRunFields(const RunOptions& message, RunFields* fields) {
  return Read(message, fields);
}

Status DecodeRunFields(const ExecutorOpts& message, RunFields* fields) {
  return Read(message, fields);
}

}  // namespace staging
}  // namespace tensorflow
