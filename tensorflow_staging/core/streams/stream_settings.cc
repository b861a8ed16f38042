// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_settings.h"

#include <cmath>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
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

// Sets `*shares` to the shares of `options`, divided by their sum.
Status ReadMemoryShares(const MultiStreamOptions& options,
                        std::vector<double>* shares) {
  shares->assign(options.memory_shares().begin(),
                 options.memory_shares().end());
  if (shares->empty()) return OkStatus();
  if (options.memory_shares_size() != options.multi_stream_num() ||
      !absl::c_all_of(*shares, [](double share) {
        return std::isfinite(share) && share > 0;
      })) {
    return errors::InvalidArgument(
        "rewrite_options.multi_stream_opts.memory_shares is [",
        absl::StrJoin(options.memory_shares(), ", "),
        "]; it must be empty, or have a positive number for each of the ",
        options.multi_stream_num(), " streams.");
  }
  const double sum = absl::c_accumulate(*shares, 0.0);
  for (double& share : *shares) share /= sum;
  return OkStatus();
}

}  // namespace

Status ReadStreamSettings(const ConfigProto& config, StreamSettings* settings) {
  *settings = StreamSettings();
  OptimizerFields optimizer;
  TF_RETURN_IF_ERROR(DecodeOptimizerFields(
      config.graph_options().optimizer_options(), &optimizer));
  settings->stages = optimizer.stage_multi_stream();
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
  TF_RETURN_IF_ERROR(ReadMemoryShares(options, &settings->memory_shares));
  settings->enabled = true;
  settings->streams = options.multi_stream_num();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
