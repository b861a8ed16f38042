// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_settings.h"

#include <string>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {
namespace {

std::string PolicyText(MultiStreamPartitionPolicy policy) {
  if (MultiStreamPartitionPolicy_IsValid(policy)) {
    return MultiStreamPartitionPolicy_Name(policy);
  }
  return strings::StrCat(static_cast<int>(policy));
}

}  // namespace

Status ReadStreamCount(const ConfigProto& config, int* streams) {
  *streams = 1;
  RewriterFields fields;
  TF_RETURN_IF_ERROR(
      DecodeRewriterFields(config.graph_options().rewrite_options(), &fields));
  if (fields.use_multi_stream() != RewriterConfig::ON) return OkStatus();
  const MultiStreamOptions& options = fields.multi_stream_opts();
  if (options.multi_stream_num() < 1 ||
      options.multi_stream_num() > kMaxStreams) {
    return errors::InvalidArgument(
        "rewrite_options.multi_stream_opts.multi_stream_num is ",
        options.multi_stream_num(), "; with use_multi_stream ON, it must be ",
        "from 1 to ", kMaxStreams,
        ". Set it to 2 for one stream besides that of the step.");
  }
  if (options.partition_policy() != NO_PARTITION) {
    return errors::Unimplemented(
        "rewrite_options.multi_stream_opts.partition_policy is ",
        PolicyText(options.partition_policy()),
        "; only NO_PARTITION, the default, is implemented so far.");
  }
  *streams = options.multi_stream_num();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
