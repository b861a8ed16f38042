// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/graph_walk.h"

#include "absl/container/flat_hash_set.h"

namespace tensorflow {
namespace staging {
namespace {

std::vector<const Node*> Walk(const std::vector<const Node*>& nodes,
                              bool forward, EdgeFilter follow) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> found;
  const auto add = [&](const Node* node) {
    if (seen.insert(node).second) found.push_back(node);
  };
  for (const Node* node : nodes) add(node);
  for (size_t i = 0; i < found.size(); ++i) {
    const Node& node = *found[i];
    for (const Edge* edge : forward ? node.out_edges() : node.in_edges()) {
      const Node* next = forward ? edge->dst() : edge->src();
      if (next->IsOp() && follow(*edge)) add(next);
    }
  }
  return found;
}

}  // namespace

std::vector<const Node*> WithAncestors(const std::vector<const Node*>& nodes,
                                       EdgeFilter follow) {
  return Walk(nodes, /*forward=*/false, follow);
}

std::vector<const Node*> WithDescendants(const std::vector<const Node*>& nodes,
                                         EdgeFilter follow) {
  return Walk(nodes, /*forward=*/true, follow);
}

}  // namespace staging
}  // namespace tensorflow
