// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_STAGE_RUNNER_OPTIONS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_STAGE_RUNNER_OPTIONS_H_

#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {

// The options of a runner of `stage`, without producers.
inline PrefetchRunnerOptions RunnerOptionsOf(const StageTestGraph& stage) {
  PrefetchRunnerOptions options;
  options.set_name(stage.name);
  options.set_resume_op(stage.Node("TensorBufferResume"));
  options.set_cancel_op(stage.Node("TensorBufferCancel"));
  options.set_close_op(stage.Node("TensorBufferClose"));
  options.set_error_code_tensor(stage.Node("error_code") + ":0");
  options.set_error_message_tensor(stage.Node("error_message") + ":0");
  options.set_stats_tensor(stage.Node("TensorBufferStats") + ":0");
  return options;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_STAGE_RUNNER_OPTIONS_H_
