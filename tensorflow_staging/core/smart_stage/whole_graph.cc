// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/whole_graph.h"

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"

namespace tensorflow {
namespace staging {
namespace {

bool HasStage(const GraphDef& graph) {
  return absl::c_any_of(graph.node(), [](const NodeDef& node) {
    return node.op() == kPutOp || node.op() == kTakeOp;
  });
}

// Whether the passes look for stages. Creating a session has checked the
// settings.
bool FindsStages(const ConfigProto& config) {
  SmartStageSettings settings;
  return ReadSmartStageSettings(config, &settings).ok() &&
         settings.finds_stages();
}

}  // namespace

void PlaceWholeGraphIfStaged(const GraphDef& graph, SessionOptions* options) {
  // Other threads may read the options now, so they change only if they must.
  if (!options->config.graph_options().place_pruned_graph()) return;
  if (!HasStage(graph) && !FindsStages(options->config)) return;
  options->config.mutable_graph_options()->set_place_pruned_graph(false);
}

}  // namespace staging
}  // namespace tensorflow
