// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/run_request.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tensorflow_staging/core/framework/graph_walk.h"

namespace tensorflow {
namespace staging {

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

std::set<std::string> RunRequest::WantedNames() const {
  std::set<std::string> names(targets_.begin(), targets_.end());
  for (const TensorId& tensor : wanted_) names.emplace(tensor.node());
  return names;
}

std::set<std::string> RunRequest::FedNames() const {
  std::set<std::string> names;
  for (const TensorId& tensor : fed_) names.emplace(tensor.node());
  return names;
}

std::set<std::string> RunRequest::Names() const {
  std::set<std::string> names = WantedNames();
  names.merge(FedNames());
  return names;
}

NodeFinder RunRequest::FindNodes(const Graph& graph) const {
  const std::set<std::string> list = Names();
  const absl::flat_hash_set<absl::string_view> names(list.begin(), list.end());
  absl::flat_hash_map<std::string, const Node*> nodes;
  // The last nodes come first: most runs name some of them, such as the ops
  // around a buffer or the update that ends a step.
  for (int id = graph.num_node_ids() - 1;
       id >= 0 && nodes.size() < names.size(); --id) {
    const Node* node = graph.FindNodeId(id);
    if (node != nullptr && node->IsOp() && names.contains(node->name())) {
      nodes.emplace(node->name(), node);
    }
  }
  return [nodes = std::move(nodes)](const std::string& name) {
    const auto it = nodes.find(name);
    return it == nodes.end() ? nullptr : it->second;
  };
}

std::vector<const Node*> RunRequest::NeededNodes(const NodeFinder& find) const {
  std::vector<const Node*> wanted;
  for (const std::string& name : WantedNames()) {
    if (const Node* node = find(name)) wanted.push_back(node);
  }
  return WithAncestors(wanted, [this](const Edge& edge) {
    return edge.IsControlEdge() || fed_.empty() ||
           FindFed(edge.src()->name(), edge.src_output()) == nullptr;
  });
}

}  // namespace staging
}  // namespace tensorflow
