// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_EDITS_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_EDITS_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Edits that several passes make to a graph.

// A plan only reads the nodes of its graph. Returns the same node of `graph`,
// whose plan it is, for a rewrite to change.
inline Node* Mutable(const Node* node, Graph* graph) {
  return graph->FindNodeId(node->id());
}

std::vector<Node*> Mutable(const std::vector<const Node*>& nodes, Graph* graph);

// Lets the end of `edge` use output `output` of `node` instead. `edge` does not
// exist any more then.
void MoveEdge(const Edge* edge, Node* node, int output, Graph* graph);

// Lets the ops that use `from`, or wait for it, use `to` instead.
void MoveUsers(Node* from, Node* to, Graph* graph);

// Adds the constant `value`, and sets `*node` to it unless `node` is null.
Status AddConstant(const std::string& name, const Tensor& value,
                   const std::string& device, Graph* graph,
                   Node** node = nullptr);

// Returns the value of kColocationAttrName for a node that must be on the same
// device as `node`.
std::vector<std::string> ColocatedWith(const Node& node);

// Checks that no two nodes have the same name. A node that the user added after
// the stages began to run may have the name of a node that SmartStage creates;
// returns ALREADY_EXISTS then.
Status CheckNamesAreUnique(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_EDITS_H_
