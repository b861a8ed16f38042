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

Status ReadStreamSettings(const ConfigProto& config, StreamSettings* settings) {
  *settings = StreamSettings();
  OptimizerFields optimizer;
  TF_RETURN_IF_ERROR(DecodeOptimizerFields(
      config.graph_options().optimizer_options(), &optimizer));
  settings->stages = optimizer.stage_multi_stream();
  settings->stages_on_cpu = optimizer.stage_subgraph_on_cpu();
  RewriterFields rewriter;
  TF_RETURN_IF_ERROR(DecodeRewriterFields(
      config.graph_options().rewrite_options(), &rewriter));
  if (rewriter.use_multi_stream() != RewriterConfig::ON) return OkStatus();
  const MultiStreamOptions& options = rewriter.multi_stream_opts();
  if (options.multi_stream_num() < 1 ||
      options.multi_stream_num() > kMaxStreams) {
    return errors::InvalidArgument(
        "rewrite_options.multi_stream_opts.multi_stream_num is ",
        options.multi_stream_num(), "; with use_multi_stream ON, it must be ",
        "from 1 to ", kMaxStreams,
        ". Set it to 2 for one stream besides that of the step.");
  }
  if (options.partition_policy() != NO_PARTITION &&
      options.partition_policy() != USER_DEFINED_PARTITION) {
    return errors::Unimplemented(
        "rewrite_options.multi_stream_opts.partition_policy is ",
        PolicyText(options.partition_policy()),
        "; only NO_PARTITION, the default, and USER_DEFINED_PARTITION are "
        "implemented. With both, tf.stream and stage_subgraph_stream_id choose "
        "the streams.");
  }
  settings->enabled = true;
  settings->streams = options.multi_stream_num();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
