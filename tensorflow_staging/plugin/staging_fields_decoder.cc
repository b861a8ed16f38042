// SPDX-License-Identifier: Apache-2.0
//
// In the place of the file of the same name in core/protobuf/, for the messages that
// plugin/message_classes.py makes: TensorFlow's own classes always have our fields as
// unknown ones here.

#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow {
namespace staging {
namespace {

template <typename Message, typename Fields>
Status Read(const Message& message, Fields* fields) {
  const protobuf::UnknownFieldSet& unknown =
      Message::GetReflection()->GetUnknownFields(message);
  std::string bytes;
  unknown.SerializeToString(&bytes);
  if (fields->ParseFromString(bytes)) return OkStatus();
  fields->Clear();
  return errors::InvalidArgument("The staging fields of ",
                                 Message::descriptor()->full_name(),
                                 " are malformed.");
}

}  // namespace

Status DecodeConfigFields(const ConfigProto& message, ConfigFields* fields) {
  return Read(message, fields);
}

Status DecodeOptimizerFields(const OptimizerOptions& message,
                             OptimizerFields* fields) {
  return Read(message, fields);
}

Status DecodeRewriterFields(const RewriterConfig& message,
                            RewriterFields* fields) {
  return Read(message, fields);
}

Status DecodeRunFields(const RunOptions& message, RunFields* fields) {
  return Read(message, fields);
}

}  // namespace staging
}  // namespace tensorflow
