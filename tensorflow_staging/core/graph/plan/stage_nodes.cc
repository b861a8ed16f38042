// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_nodes.h"

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {

std::vector<const Node*> InGraphOrder(
    const absl::flat_hash_set<const Node*>& nodes) {
  std::vector<const Node*> sorted(nodes.begin(), nodes.end());
  absl::c_sort(sorted,
               [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return sorted;
}

std::vector<const Node*> NodesOfStage(const PlannedStage& stage) {
  if (!stage.is_manual()) {
    return InGraphOrder(
        {stage.region->nodes.begin(), stage.region->nodes.end()});
  }
  std::vector<const Node*> found = stage.puts;
  absl::flat_hash_set<const Node*> nodes(found.begin(), found.end());
  while (!found.empty()) {
    const Node* node = found.back();
    found.pop_back();
    for (const Edge* edge : node->in_edges()) {
      const Node* input = edge->src();
      if (input->IsOp() && !IsBufferTake(*input) && !IsFedByStages(*edge) &&
          nodes.insert(input).second) {
        found.push_back(input);
      }
    }
  }
  return InGraphOrder(nodes);
}

}  // namespace staging
}  // namespace tensorflow
