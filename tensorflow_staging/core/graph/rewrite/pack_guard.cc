// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/pack_guard.h"

#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Whether Grappler may remove `node` and connect its input to its users.
bool IsRemovable(const Node& node) {
  return node.num_outputs() == 1 && node.num_inputs() == 1 &&
         (node.IsIdentity() || node.type_string() == "PreventGradient" ||
          node.type_string() == "Snapshot" ||
          node.type_string() == "StopGradient");
}

// Whether `edge` leads to a Pack directly or through removable nodes only.
bool LeadsToPack(const Edge* edge) {
  return absl::c_any_of(
      WithDescendants({edge->dst()},
                      [](const Edge& next) {
                        return !next.IsControlEdge() &&
                               IsRemovable(*next.src());
                      }),
      [](const Node* node) { return node->type_string() == "Pack"; });
}

Status GuardTake(Node* take, Graph* graph) {
  // By output of the Take.
  std::map<int, std::vector<const Edge*>> edges_to_packs;
  for (const Edge* edge : take->out_edges()) {
    if (!edge->IsControlEdge() && LeadsToPack(edge)) {
      edges_to_packs[edge->src_output()].push_back(edge);
    }
  }
  std::string stage;
  TF_RETURN_IF_ERROR(GetNodeAttr(take->attrs(), kSharedNameAttr, &stage));
  for (const auto& [output, edges] : edges_to_packs) {
    Node* guard = nullptr;
    TF_RETURN_IF_ERROR(
        NodeBuilder(absl::StrCat(take->name(), "/output_", output),
                    kStagedNodeOp)
            .Input(std::vector<NodeBuilder::NodeOut>{{take, output}})
            .Attr(kDtypesAttr, DataTypeVector{take->output_type(output)})
            .Attr(kIndicesAttr, std::vector<int>{0})
            .Attr(kStageNameAttr, stage)
            .Attr(kStandsForAttr, absl::StrCat(take->name(), "_", output))
            .Device(take->requested_device())
            .Attr(kColocationAttrName, ColocatedWith(*take))
            .Finalize(graph, &guard));
    for (const Edge* edge : edges) MoveEdge(edge, guard, 0, graph);
  }
  return OkStatus();
}

}  // namespace

Status GuardPacksOfTakenTensors(Graph* graph) {
  std::vector<Node*> takes;
  for (Node* node : graph->op_nodes()) {
    if (IsBufferTake(*node) && node->num_outputs() > 1) takes.push_back(node);
  }
  for (Node* take : takes) TF_RETURN_IF_ERROR(GuardTake(take, graph));
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
