// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_placement.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/graph/facts/union_find.h"
#include "tensorflow_staging/core/streams/gpu_devices.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsRefOrResource(DataType type) {
  return IsRefType(type) || type == DT_RESOURCE;
}

bool HoldsResource(const Node& node) {
  return absl::c_any_of(node.output_types(), IsRefOrResource) &&
         absl::c_none_of(node.input_types(), IsRefOrResource);
}

// Returns the names of the other nodes with which `node` is colocated.
std::vector<std::string> OthersColocatedWith(const Node& node) {
  std::vector<std::string> entries, names;
  if (!TryGetNodeAttr(node.attrs(), kColocationAttrName, &entries)) return {};
  for (absl::string_view entry : entries) {
    if (absl::ConsumePrefix(&entry, kColocationGroupPrefix) &&
        entry != node.name()) {
      names.emplace_back(entry);
    }
  }
  return names;
}

// Returns the groups of nodes, by id, that must be on one device. They are those
// of TensorFlow's placer, apart from nodes that it has placed on different
// devices.
UnionFind GroupsOf(const Graph& graph) {
  UnionFind groups(graph.num_node_ids());
  const auto join = [&groups](const Node& a, const Node& b) {
    if (a.assigned_device_name_index() == b.assigned_device_name_index()) {
      groups.Join(a.id(), b.id());
    }
  };
  absl::flat_hash_map<absl::string_view, const Node*> by_name;
  for (const Node* node : graph.op_nodes()) by_name[node->name()] = node;
  std::map<BufferKey, const Node*> by_buffer;
  for (const Node* node : graph.op_nodes()) {
    for (const std::string& name : OthersColocatedWith(*node)) {
      const auto it = by_name.find(name);
      if (it != by_name.end()) join(*node, *it->second);
    }
    // Records begin on one device.
    if (IsBufferPut(*node) || IsBufferTake(*node)) {
      if (const std::optional<BufferKey> key = BufferOf(*node)) {
        join(*node, *by_buffer.try_emplace(*key, node).first->second);
      }
    }
  }
  const auto& exempt = InputColocationExemptionRegistry::Global()->Get();
  for (const Edge* edge : graph.edges()) {
    if (edge->IsControlEdge() || !edge->src()->IsOp() || !edge->dst()->IsOp()) {
      continue;
    }
    const Node& user = *edge->dst();
    if (IsRefOrResource(user.input_type(edge->dst_input())) &&
        exempt.find(user.type_string()) == exempt.end()) {
      join(*edge->src(), user);
    }
    // An executor needs both ends of a loop's back edge.
    if (edge->src()->IsNextIteration()) join(*edge->src(), user);
  }
  return groups;
}

// The node of a group with the least value decides which stream the group is
// on. The name makes the decision independent of the order of the nodes, so
// that it is the same when the graph is extended.
using Rank = std::tuple<int, bool, absl::string_view>;

Rank RankOf(const Node& node, const RequestedStreams& requested) {
  int kind = 2;
  if (IsBufferPut(node)) {
    kind = requested[node.id()].has_value() ? 0 : 3;
  } else if (IsBufferTake(node) || HoldsResource(node)) {
    kind = 1;
  } else if (node.IsNextIteration()) {
    // The start of the loop decides.
    kind = 3;
  }
  return {kind, !OthersColocatedWith(node).empty(), node.name()};
}

}  // namespace

void PlaceOnStreams(int gpus, const RequestedStreams& requested, Graph* graph) {
  GpuDevices devices(gpus);
  const auto may_move = [&](const Node& node) {
    const int number = devices.Number(node);
    return number >= 0 && number < gpus;
  };
  UnionFind groups = GroupsOf(*graph);
  absl::flat_hash_map<int, const Node*> leaders;
  for (const Node* node : graph->op_nodes()) {
    if (!may_move(*node)) continue;
    const Node*& leader =
        leaders.try_emplace(groups.Find(node->id()), node).first->second;
    if (RankOf(*node, requested) < RankOf(*leader, requested)) leader = node;
  }
  for (Node* node : graph->op_nodes()) {
    if (!may_move(*node)) continue;
    const Node& leader = *leaders.at(groups.Find(node->id()));
    const int stream = requested[leader.id()].value_or(0);
    if (stream == 0) continue;
    node->set_assigned_device_name(devices.OfStream(stream, *node));
  }
}

}  // namespace staging
}  // namespace tensorflow
