// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {
namespace {

std::vector<const Node*> NodesNamed(
    const absl::flat_hash_set<absl::string_view>& names, const Graph& graph) {
  std::vector<const Node*> nodes;
  if (names.empty()) return nodes;
  for (const Node* node : graph.op_nodes()) {
    if (names.contains(node->name())) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

RunRequest::RunRequest(const CallableOptions& options) {
  for (const std::string& feed : options.feed()) {
    fed_.insert(ParseTensorName(feed));
  }
  for (const TensorConnection& connection : options.tensor_connection()) {
    fed_.insert(ParseTensorName(connection.to_tensor()));
  }
  for (const TensorConnection& connection : options.tensor_connection()) {
    wanted_.insert(ParseTensorName(connection.from_tensor()));
  }
  for (const std::string& fetch : options.fetch()) {
    const TensorId tensor = ParseTensorName(fetch);
    if (!fed_.contains(tensor)) wanted_.insert(tensor);
  }
  for (const std::string& target : options.target()) targets_.insert(target);
}

const TensorId* RunRequest::FindFed(absl::string_view node, int output) const {
  const auto it = fed_.find(TensorId(node, output));
  return it == fed_.end() ? nullptr : &*it;
}

std::vector<const Node*> RunRequest::WantedNodes(const Graph& graph) const {
  absl::flat_hash_set<absl::string_view> names = targets_;
  for (const TensorId& tensor : wanted_) names.insert(tensor.node());
  return NodesNamed(names, graph);
}

std::vector<const Node*> RunRequest::FedNodes(const Graph& graph) const {
  absl::flat_hash_set<absl::string_view> names;
  for (const TensorId& tensor : fed_) names.insert(tensor.node());
  return NodesNamed(names, graph);
}

std::vector<const Node*> RunRequest::NeededNodes(const Graph& graph) const {
  std::vector<bool> seen(graph.num_node_ids(), false);
  std::vector<const Node*> needed;
  const auto need = [&](const Node* node) {
    if (!node->IsOp() || seen[node->id()]) return;
    seen[node->id()] = true;
    needed.push_back(node);
  };
  for (const Node* node : WantedNodes(graph)) need(node);
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Edge* edge : needed[i]->in_edges()) {
      if (edge->IsControlEdge() || fed_.empty() ||
          FindFed(edge->src()->name(), edge->src_output()) == nullptr) {
        need(edge->src());
      }
    }
  }
  return needed;
}

}  // namespace staging
}  // namespace tensorflow
