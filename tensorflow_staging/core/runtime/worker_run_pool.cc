// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/worker_run_pool.h"

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools.h"

namespace tensorflow {
namespace staging {

Status ForwardStageThreadPool(const RunOptions& run_options,
                              ExecutorOpts* options) {
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(run_options, &fields));
  if (!fields.use_stage_subgraph_thread_pool()) return OkStatus();
  TF_RETURN_IF_ERROR(CheckAsksForNoOtherThreads(run_options));
  if (!options->MergeFromString(fields.SerializeAsString())) {
    return errors::Internal("ExecutorOpts do not accept unknown fields.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
