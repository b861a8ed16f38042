// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/partial_run_pool.h"

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local const RunOptions* current = nullptr;

}  // namespace

ScopedPartialRunOptions::ScopedPartialRunOptions(const RunOptions& options)
    : options_(&current, &options) {}

const RunOptions& PartialRunOptions() {
  return current != nullptr ? *current : RunOptions::default_instance();
}

Status CheckNoPoolForPartialRun() {
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(PartialRunOptions(), &fields));
  if (!fields.use_stage_subgraph_thread_pool()) return OkStatus();
  return errors::Unimplemented(
      "The partial run asks for stage thread pool ",
      fields.stage_subgraph_thread_pool_id(),
      ", but partial runs of a distributed session have no stage thread pools. "
      "Do not set use_stage_subgraph_thread_pool, use a whole run, or use a "
      "local session, whose target is empty.");
}

}  // namespace staging
}  // namespace tensorflow
