// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/pack_guard.h"

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

// Whether Grappler may take `node` out and connect its input to its consumers.
bool IsRemovable(const Node& node) {
  return node.num_outputs() == 1 && node.num_inputs() == 1 &&
         (node.IsIdentity() || node.type_string() == "PreventGradient" ||
          node.type_string() == "Snapshot" ||
          node.type_string() == "StopGradient");
}

// Whether `edge` leads to a Pack through nothing but removable nodes.
bool LeadsToPack(const Edge* edge) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> nodes = {edge->dst()};
  while (!nodes.empty()) {
    const Node* node = nodes.back();
    nodes.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->type_string() == "Pack") return true;
    if (!IsRemovable(*node)) continue;
    for (const Edge* next : node->out_edges()) {
      if (!next->IsControlEdge()) nodes.push_back(next->dst());
    }
  }
  return false;
}

Status GuardTake(Node* take, Graph* graph) {
  std::map<int, std::vector<const Edge*>> endangered;  // By output of the Take.
  for (const Edge* edge : take->out_edges()) {
    if (!edge->IsControlEdge() && LeadsToPack(edge)) {
      endangered[edge->src_output()].push_back(edge);
    }
  }
  std::string stage;
  TF_RETURN_IF_ERROR(GetNodeAttr(take->attrs(), "shared_name", &stage));
  for (const auto& [output, edges] : endangered) {
    Node* guard = nullptr;
    TF_RETURN_IF_ERROR(
        NodeBuilder(absl::StrCat(take->name(), "/output_", output),
                    "StagedNode")
            .Input(std::vector<NodeBuilder::NodeOut>{{take, output}})
            .Attr("dtypes", DataTypeVector{take->output_type(output)})
            .Attr("indices", std::vector<int>{0})
            .Attr("stage", stage)
            .Device(take->requested_device())
            .Attr("_class",
                  std::vector<std::string>{absl::StrCat("loc:@", take->name())})
            .Finalize(graph, &guard));
    for (const Edge* edge : edges) {
      Node* const to = edge->dst();
      const int input = edge->dst_input();
      graph->RemoveEdge(edge);
      graph->AddEdge(guard, 0, to, input);
    }
  }
  return OkStatus();
}

}  // namespace

Status GuardPacksOfTaken(Graph* graph) {
  std::vector<Node*> takes;
  for (Node* node : graph->op_nodes()) {
    if (IsBufferTake(*node) && node->num_outputs() > 1) takes.push_back(node);
  }
  for (Node* take : takes) TF_RETURN_IF_ERROR(GuardTake(take, graph));
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
