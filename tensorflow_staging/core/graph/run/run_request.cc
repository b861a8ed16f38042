// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

RunRequest::RunRequest(const CallableOptions& options) {
  for (const std::string& feed : options.feed()) {
    fed_.insert(ParseTensorName(feed));
  }
  for (const TensorConnection& connection : options.tensor_connection()) {
    fed_.insert(ParseTensorName(connection.to_tensor()));
    wanted_nodes_.insert(ParseTensorName(connection.from_tensor()).node());
  }
  for (const std::string& fetch : options.fetch()) {
    const TensorId tensor = ParseTensorName(fetch);
    fetched_.insert(tensor);
    if (!fed_.contains(tensor)) wanted_nodes_.insert(tensor.node());
  }
  for (const std::string& target : options.target()) {
    wanted_nodes_.insert(target);
  }
}

const TensorId* RunRequest::FindFed(absl::string_view node, int output) const {
  const auto it = fed_.find(TensorId(node, output));
  return it == fed_.end() ? nullptr : &*it;
}

std::vector<const Node*> RunRequest::NeededNodes(const Graph& graph) const {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> needed;
  const auto need = [&](const Node* node) {
    if (node->IsOp() && seen.insert(node).second) needed.push_back(node);
  };
  for (const Node* node : graph.op_nodes()) {
    if (wanted_nodes_.contains(node->name())) need(node);
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Edge* edge : needed[i]->in_edges()) {
      if (edge->IsControlEdge() ||
          FindFed(edge->src()->name(), edge->src_output()) == nullptr) {
        need(edge->src());
      }
    }
  }
  return needed;
}

}  // namespace staging
}  // namespace tensorflow
