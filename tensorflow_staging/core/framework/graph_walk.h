// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_WALK_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_WALK_H_

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

using EdgeFilter = absl::FunctionRef<bool(const Edge&)>;

inline bool AnyEdge(const Edge&) { return true; }

// Returns `nodes` and the ops that lead to them by edges that `follow` accepts.
// Each is there once; the nodes farther away come later.
std::vector<const Node*> WithAncestors(const std::vector<const Node*>& nodes,
                                       EdgeFilter follow = AnyEdge);

// Returns `nodes` and the ops to which they lead, likewise.
std::vector<const Node*> WithDescendants(const std::vector<const Node*>& nodes,
                                         EdgeFilter follow = AnyEdge);

// Returns `nodes`, a vector or a set, in the order of the graph.
template <typename Nodes>
std::vector<const Node*> InGraphOrder(const Nodes& nodes) {
  std::vector<const Node*> sorted(nodes.begin(), nodes.end());
  absl::c_sort(sorted,
               [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return sorted;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_GRAPH_WALK_H_
