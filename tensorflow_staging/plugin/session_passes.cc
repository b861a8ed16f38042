// SPDX-License-Identifier: Apache-2.0
//
// The passes that do for sessions what patches of the fork do, and refuse what only
// a patch could do. They run around those of smart_stage/smart_stage_pass.cc.

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_pass.h"
#include "tensorflow_staging/plugin/begin_of_run.h"
#include "tensorflow_staging/plugin/fed_ahead.h"
#include "tensorflow_staging/plugin/joined_sources.h"

namespace tensorflow {
namespace staging {
namespace {

// A stage needs the whole graph: what the step uses of the stage's sources decides
// what a record holds.
Status CheckGraphIsWhole(const GraphOptimizationPassOptions& options,
                         Graph* graph) {
  if (!options.session_options->config.graph_options().place_pruned_graph() ||
      !absl::c_any_of(graph->op_nodes(),
                      [](const Node* node) { return IsBufferOp(*node); })) {
    return OkStatus();
  }
  return errors::FailedPrecondition(
      "The session has GraphOptions.place_pruned_graph, as an "
      "InteractiveSession does, and its graph has a stage. Beside an official "
      "TensorFlow, use tf.compat.v1.Session without that option.");
}

Status NameAhead(const GraphOptimizationPassOptions&, Graph* graph) {
  NameWhatIsAhead(graph);
  NameSources(graph);
  return OkStatus();
}

Status CheckAndBeginRun(const GraphOptimizationPassOptions&, Graph* graph) {
  TF_RETURN_IF_ERROR(CheckNothingAheadIsFed(*graph));
  TF_RETURN_IF_ERROR(CheckAllSourcesAreUsed(*graph));
  return AddBeginOfRun(graph);
}

REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, 4,
                      GraphPass<CheckGraphIsWhole>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, 6,
                      GraphPass<NameAhead>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 6,
                      GraphPass<CheckAndBeginRun>);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
