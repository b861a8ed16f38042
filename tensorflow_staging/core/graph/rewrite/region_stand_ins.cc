// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;
using NodeOut = NodeBuilder::NodeOut;

// The outputs of a Take, by the tensors that they carry.
using TakenOutputs = absl::flat_hash_map<std::pair<const Node*, int>, int>;

// Whether a stand-in keeps the attribute `name` of its node. Only the clone
// keeps _XlaMustCompile, which makes the runtime look for a function to compile
// with the name of the node's op.
bool IsKept(absl::string_view name) {
  return absl::StartsWith(name, "_") && name != "_XlaMustCompile" &&
         name != kStandInAttr;
}

// Adds to `carried`, the outputs of the Take by those of `stand_in`, what
// `stand_in`, of the stage before in a chain, passes on. `taken_outputs` are the
// outputs of the Take by the tensors that they carry.
Status AddPassedOn(const Node& stand_in, const TakenOutputs& taken_outputs,
                   std::map<int, int>* carried) {
  std::vector<int> outputs;
  TF_RETURN_IF_ERROR(OutputsOfInputs(stand_in, &outputs));
  for (const Edge* edge : stand_in.in_edges()) {
    if (edge->IsControlEdge() ||
        edge->dst_input() >= static_cast<int>(outputs.size())) {
      continue;
    }
    const TakenTensor taken = TakenTensorOf(*edge);
    const auto it = taken_outputs.find({taken.node, taken.output});
    if (it != taken_outputs.end()) {
      (*carried)[outputs[edge->dst_input()]] = it->second;
    }
  }
  return OkStatus();
}

// Finds the outputs of the Take that carry outputs of `node`, by index of the
// node's output.
Status FindCarried(const Node& node, const TakenOutputs& taken_outputs,
                   std::map<int, int>* carried) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto it = taken_outputs.find({&node, i});
    if (it != taken_outputs.end()) (*carried)[i] = it->second;
  }
  return IsStandIn(node) ? AddPassedOn(node, taken_outputs, carried)
                         : OkStatus();
}

std::vector<const Edge*> UsesOutside(const NodeSet& region, const Node& node) {
  std::vector<const Edge*> uses;
  for (const Edge* edge : node.out_edges()) {
    if (edge->dst()->IsOp() && !region.contains(edge->dst())) {
      uses.push_back(edge);
    }
  }
  return uses;
}

// The nodes of the region that get a stand-in, and the names of the others.
struct Replaced {
  std::vector<Node*> nodes;
  absl::flat_hash_set<std::string> lost;
};

Replaced FindReplaced(const PlannedStage& stage, const NodeSet& region,
                      const absl::flat_hash_set<std::string>& colocated_with,
                      Graph* graph) {
  NodeSet asked_for(stage.region->sources.begin(), stage.region->sources.end());
  for (const StagedTensor& tensor : stage.region->boundary) {
    asked_for.insert(tensor.node);
  }
  Replaced replaced;
  for (const Node* node : stage.region->nodes) {
    if (asked_for.contains(node) || IsStandIn(*node) ||
        colocated_with.contains(node->name()) ||
        !UsesOutside(region, *node).empty()) {
      replaced.nodes.push_back(Mutable(node, graph));
    } else {
      replaced.lost.insert(node->name());
    }
  }
  return replaced;
}

// Returns `colocation` without the nodes of the region that have no stand-in.
AttrValue KeptColocation(const AttrValue& colocation,
                         const absl::flat_hash_set<std::string>& lost) {
  AttrValue kept;
  kept.mutable_list();
  for (const std::string& entry : colocation.list().s()) {
    absl::string_view node = entry;
    if (!absl::ConsumePrefix(&node, kColocationGroupPrefix) ||
        !lost.contains(node)) {
      kept.mutable_list()->add_s(entry);
    }
  }
  return kept;
}

// Adds the stand-in of `node`. `carried` are the outputs of the Take that carry
// outputs of the node, by index of the node's output.
Status AddStandIn(const PlannedStage& stage, const Node& node,
                  const std::map<int, int>& carried,
                  const std::vector<PartialTensorShape>& taken_shapes,
                  const absl::flat_hash_set<std::string>& lost,
                  bool beside_take, Node* take, Graph* graph, Node** stand_in) {
  std::vector<NodeOut> values;
  std::vector<int> indices;
  std::vector<PartialTensorShape> shapes(node.num_outputs());
  for (const auto& [output, take_output] : carried) {
    values.emplace_back(take, take_output);
    indices.push_back(output);
    shapes[output] = taken_shapes[take_output];
  }
  std::unique_ptr<NodeBuilder> builder;
  bool is_staged_node = false;
  if (node.num_outputs() == 0) {
    builder = std::make_unique<NodeBuilder>(node.name(), "NoOp");
  } else if (node.num_outputs() == 1 && !values.empty()) {
    builder = std::make_unique<NodeBuilder>(node.name(), "Identity");
    builder->Input(values.front());
  } else {
    // A stand-in passes on values, also for a node that yields references.
    DataTypeVector dtypes;
    for (const DataType dtype : node.output_types()) {
      dtypes.push_back(BaseType(dtype));
    }
    builder = std::make_unique<NodeBuilder>(node.name(), kStagedNodeOp);
    builder->Input(values)
        .Attr(kDtypesAttr, dtypes)
        .Attr(kIndicesAttr, indices)
        .Attr(kShapesAttr, shapes)
        .Attr(kStageNameAttr, stage.name)
        .Attr(kStandsForAttr, node.name());
    is_staged_node = true;
  }
  // Running this node, or waiting for it, still takes the next record.
  if (values.empty()) builder->ControlInput(take);
  std::string device = node.requested_device();
  if (beside_take && CpuOfTask(node) != CpuOfTask(*take)) {
    device = take->requested_device();
  }
  bool constrained = !device.empty();
  for (const auto& [name, value] : node.attrs()) {
    if (!IsKept(name)) continue;
    if (name != kColocationAttrName) {
      builder->Attr(name, value);
    } else if (!beside_take) {
      builder->Attr(name, KeptColocation(value, lost));
      constrained = true;
    }
  }
  // Without a device, the placer would put the StagedNode on an accelerator,
  // even if it passes on strings.
  builder->Device(!constrained && is_staged_node ? CpuOfTask(node) : device);
  TF_RETURN_IF_ERROR(builder->Finalize(graph, stand_in));
  MarkStandIn(stage.name, *stand_in);
  return OkStatus();
}

}  // namespace

absl::flat_hash_set<std::string> NodesWithColocatedUsers(
    const std::vector<const StagedRegion*>& regions, const Graph& graph) {
  absl::flat_hash_map<absl::string_view, const StagedRegion*> region_of;
  for (const StagedRegion* region : regions) {
    for (const Node* node : region->nodes) region_of[node->name()] = region;
  }
  const auto find = [&region_of](absl::string_view name) {
    const auto it = region_of.find(name);
    return it == region_of.end() ? nullptr : it->second;
  };
  absl::flat_hash_set<std::string> names;
  for (const Node* node : graph.op_nodes()) {
    std::vector<std::string> colocation;
    if (!TryGetNodeAttr(node->attrs(), kColocationAttrName, &colocation)) {
      continue;
    }
    for (absl::string_view name : colocation) {
      if (absl::ConsumePrefix(&name, kColocationGroupPrefix) &&
          find(name) != find(node->name())) {
        names.emplace(name);
      }
    }
  }
  return names;
}

Status ReplaceByStandIns(const PlannedStage& stage,
                         const absl::flat_hash_set<std::string>& colocated_with,
                         const std::vector<PartialTensorShape>& shapes,
                         bool beside_take, Node* take, Graph* graph) {
  const std::vector<const Node*>& nodes = stage.region->nodes;
  const NodeSet region(nodes.begin(), nodes.end());
  TakenOutputs taken_outputs;
  const std::vector<StagedTensor>& boundary = stage.region->boundary;
  for (size_t i = 0; i < boundary.size(); ++i) {
    taken_outputs[{boundary[i].node, boundary[i].index}] = i;
  }
  const Replaced replaced = FindReplaced(stage, region, colocated_with, graph);
  for (Node* node : replaced.nodes) {
    std::map<int, int> carried;
    TF_RETURN_IF_ERROR(FindCarried(*node, taken_outputs, &carried));
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(AddStandIn(stage, *node, carried, shapes, replaced.lost,
                                  beside_take, take, graph, &stand_in));
    for (const Edge* edge : UsesOutside(region, *node)) {
      MoveEdge(edge, stand_in, edge->src_output(), graph);
    }
  }
  for (Node* node : Mutable(nodes, graph)) graph->RemoveNode(node);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
