// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_MUTABLE_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_MUTABLE_NODES_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// A plan only reads the nodes of its graph. Returns the same node of `graph`,
// whose plan it is, for the rewrite to change.
inline Node* Mutable(const Node* node, Graph* graph) {
  return graph->FindNodeId(node->id());
}

inline std::vector<Node*> Mutable(const std::vector<const Node*>& nodes,
                                  Graph* graph) {
  std::vector<Node*> found;
  for (const Node* node : nodes) found.push_back(Mutable(node, graph));
  return found;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_MUTABLE_NODES_H_
