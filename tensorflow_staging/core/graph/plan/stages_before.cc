// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stages_before.h"

#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"

namespace tensorflow {
namespace staging {
namespace {

using Nodes = std::vector<const Node*>;

std::vector<Nodes> FindNodes(
    const Graph& graph, const std::vector<std::vector<std::string>>& names) {
  absl::flat_hash_map<absl::string_view, const Node*> found;
  for (const std::vector<std::string>& of_stage : names) {
    for (const std::string& name : of_stage) found[name] = nullptr;
  }
  for (const Node* node : graph.op_nodes()) {
    if (auto it = found.find(node->name()); it != found.end()) {
      it->second = node;
    }
  }
  std::vector<Nodes> nodes(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    for (const std::string& name : names[i]) {
      if (found[name] != nullptr) nodes[i].push_back(found[name]);
    }
  }
  return nodes;
}

// Returns the buffers whose records are taken by what leads to `nodes`.
std::set<BufferKey> BuffersTakenBefore(const Nodes& nodes) {
  std::set<BufferKey> taken;
  for (const Node* node : WithAncestors(nodes, [](const Edge& edge) {
         return !IsBufferTake(*edge.dst());
       })) {
    if (!IsBufferTake(*node)) continue;
    if (auto buffer = BufferOf(*node)) taken.insert(*buffer);
  }
  return taken;
}

}  // namespace

std::vector<std::vector<int>> StagesBefore(
    const Graph& graph, const std::vector<std::vector<std::string>>& stages) {
  const std::vector<Nodes> nodes = FindNodes(graph, stages);
  std::map<BufferKey, int> stage_of;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Node* node : nodes[i]) {
      if (!IsBufferPut(*node)) continue;
      if (auto buffer = BufferOf(*node)) stage_of[*buffer] = i;
    }
  }
  std::vector<std::vector<int>> before(stages.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<int> indices;
    for (const BufferKey& buffer : BuffersTakenBefore(nodes[i])) {
      if (auto it = stage_of.find(buffer); it != stage_of.end()) {
        indices.insert(it->second);
      }
    }
    before[i].assign(indices.begin(), indices.end());
  }
  return before;
}

}  // namespace staging
}  // namespace tensorflow
