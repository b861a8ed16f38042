// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/graph_edits.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

std::vector<Node*> Mutable(const std::vector<const Node*>& nodes,
                           Graph* graph) {
  std::vector<Node*> found;
  for (const Node* node : nodes) found.push_back(Mutable(node, graph));
  return found;
}

void MoveEdge(const Edge* edge, Node* node, int output, Graph* graph) {
  Node* const user = edge->dst();
  const int input = edge->dst_input();
  graph->RemoveEdge(edge);
  graph->AddEdge(node, output, user, input);
}

void MoveUsers(Node* from, Node* to, Graph* graph) {
  const std::vector<const Edge*> edges(from->out_edges().begin(),
                                       from->out_edges().end());
  for (const Edge* edge : edges) {
    if (edge->dst()->IsOp()) MoveEdge(edge, to, edge->src_output(), graph);
  }
}

Status AddConstant(const std::string& name, const Tensor& value,
                   const std::string& device, Graph* graph, Node** node) {
  Node* added = nullptr;
  return NodeBuilder(name, "Const")
      .Attr("dtype", value.dtype())
      .Attr("value", value)
      .Device(device)
      .Finalize(graph, node == nullptr ? &added : node);
}

std::vector<std::string> ColocatedWith(const Node& node) {
  return {absl::StrCat(kColocationGroupPrefix, node.name())};
}

Status CheckNamesAreUnique(const Graph& graph) {
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(graph.num_op_nodes());
  for (const Node* node : graph.op_nodes()) {
    if (names.insert(node->name()).second) continue;
    return errors::AlreadyExists(
        "Node '", node->name(),
        "' has the name of a node that SmartStage creates for a stage of this "
        "session. Nodes that are added after the stages began to run need "
        "other names: use another name scope for them, or set another name in "
        "tf.SmartStageOptions.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
