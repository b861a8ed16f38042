// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/begins_without_put.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tensorflow_staging/core/framework/buffer_nodes.h"

namespace tensorflow {
namespace staging {

std::vector<Node*> BeginsWithoutPut(const Graph& graph, const RunRequest& run) {
  const auto nodes = graph.op_nodes();
  if (std::none_of(nodes.begin(), nodes.end(),
                   [](const Node* node) { return IsBufferBegin(*node); })) {
    return {};
  }
  const std::vector<const Node*> needed = run.NeededNodes(graph);
  std::set<std::optional<BufferKey>> put_into;
  for (const Node* node : needed) {
    if (IsBufferPut(*node)) put_into.insert(BufferOf(*node));
  }
  std::vector<Node*> begins;
  for (const Node* node : needed) {
    if (IsBufferBegin(*node) && put_into.count(BufferOf(*node)) == 0) {
      begins.push_back(graph.FindNodeId(node->id()));
    }
  }
  return begins;
}

}  // namespace staging
}  // namespace tensorflow
