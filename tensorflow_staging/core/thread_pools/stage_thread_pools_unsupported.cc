// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools_unsupported.h"

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {

Status CheckNoStageThreadPools(const SessionOptions& options) {
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(options.config, &fields));
  const int pools = fields.session_stage_subgraph_thread_pool_size();
  if (pools == 0) return OkStatus();
  return errors::Unimplemented(
      "ConfigProto.session_stage_subgraph_thread_pool has ", pools,
      pools == 1 ? " entry" : " entries", ", but the target of the session is ",
      options.target,
      ": stage thread pools are not supported in distributed sessions. Remove "
      "the entries, or use a local session, whose target is empty.");
}

Status CheckNoStageThreadPool(const RunOptions& run_options) {
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(run_options, &fields));
  if (!fields.use_stage_subgraph_thread_pool()) return OkStatus();
  return errors::Unimplemented(
      "The run asks for stage thread pool ",
      fields.stage_subgraph_thread_pool_id(),
      ", but stage thread pools are not supported in distributed sessions. "
      "Do not set use_stage_subgraph_thread_pool, or use a local session, "
      "whose target is empty.");
}

}  // namespace staging
}  // namespace tensorflow
