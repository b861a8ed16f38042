// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/multi_stream_unsupported.h"

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {

Status CheckNoMultiStream(const SessionOptions& options) {
  RewriterFields fields;
  TF_RETURN_IF_ERROR(DecodeRewriterFields(
      options.config.graph_options().rewrite_options(), &fields));
  if (fields.use_multi_stream() != RewriterConfig::ON) return OkStatus();
  return errors::Unimplemented(
      "rewrite_options.use_multi_stream is ON, but the target of the session "
      "is ",
      options.target,
      ": several GPU streams are not supported in distributed sessions. Turn "
      "it off, or use a local session, whose target is empty.");
}

}  // namespace staging
}  // namespace tensorflow
