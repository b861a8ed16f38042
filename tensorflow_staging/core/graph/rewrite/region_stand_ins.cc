// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;
using NodeOut = NodeBuilder::NodeOut;

// Whether a stand-in keeps the attribute `name` of its node. Only the clone
// keeps _XlaMustCompile, which makes the runtime look for a function to compile
// with the name of the node's op.
bool IsKept(absl::string_view name) {
  return absl::StartsWith(name, "_") && name != "_XlaMustCompile" &&
         name != kStandInAttr;
}

// Finds what `stand_in`, of the stage before in a chain, passes on.
Status FindPassedOn(const Node& stand_in, StagedUse* use) {
  std::vector<int> outputs;
  TF_RETURN_IF_ERROR(OutputsOfInputs(stand_in, &outputs));
  for (const Edge* edge : stand_in.in_edges()) {
    if (!edge->IsControlEdge() &&
        edge->dst_input() < static_cast<int>(outputs.size())) {
      use->passed_on[outputs[edge->dst_input()]] = TakenTensorOf(*edge);
    }
  }
  return OkStatus();
}

StagedUse FindUse(const NodeSet& region, Node* node) {
  StagedUse use;
  use.node = node;
  for (const Edge* edge : node->out_edges()) {
    if (edge->dst()->IsOp() && !region.contains(edge->dst())) {
      use.uses.push_back({edge->src_output(), edge->dst(), edge->dst_input()});
    }
  }
  return use;
}

// Adds the stand-in of `use`. `carried` are the outputs of the Take that carry
// outputs of the node, by index of the node's output.
Status AddStandIn(const std::string& stage, const StagedUse& use,
                  const std::map<int, int>& carried,
                  const std::vector<PartialTensorShape>& taken_shapes,
                  Node* take, Graph* graph, Node** stand_in) {
  const Node& node = *use.node;
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
    builder = std::make_unique<NodeBuilder>(use.name, "NoOp");
  } else if (node.num_outputs() == 1 && !values.empty()) {
    builder = std::make_unique<NodeBuilder>(use.name, "Identity");
    builder->Input(values.front());
  } else {
    // A stand-in passes on values, also for a node that yields references.
    DataTypeVector dtypes;
    for (const DataType dtype : node.output_types()) {
      dtypes.push_back(BaseType(dtype));
    }
    builder = std::make_unique<NodeBuilder>(use.name, kStagedNodeOp);
    builder->Input(values)
        .Attr(kDtypesAttr, dtypes)
        .Attr(kIndicesAttr, indices)
        .Attr(kShapesAttr, shapes)
        .Attr(kStageNameAttr, stage)
        .Attr(kStandsForAttr, use.name);
    is_staged_node = true;
  }
  // Running this node, or waiting for it, still takes the next record.
  if (values.empty()) builder->ControlInput(take);
  bool constrained = !use.device.empty();
  for (const auto& [name, value] : use.attrs) {
    builder->Attr(name, value);
    constrained = constrained || name == kColocationAttrName;
  }
  // Without a device, the placer would put the StagedNode on an accelerator,
  // even if it passes on strings.
  builder->Device(!constrained && is_staged_node ? CpuOfTask(node)
                                                 : use.device);
  TF_RETURN_IF_ERROR(builder->Finalize(graph, stand_in));
  MarkStandIn(stage, *stand_in);
  return OkStatus();
}

// Returns `use` with a stand-in in the task of `take` (see AddStandIns).
StagedUse BesideTake(StagedUse use, const Node& take) {
  const auto is_colocation = [](const auto& attr) {
    return attr.first == kColocationAttrName;
  };
  use.attrs.erase(
      std::remove_if(use.attrs.begin(), use.attrs.end(), is_colocation),
      use.attrs.end());
  if (CpuOfTask(*use.node) != CpuOfTask(take)) {
    use.device = take.requested_device();
  }
  return use;
}

// Drops colocations with nodes of the region that have no stand-in.
void DropLostColocations(const PlannedStage& stage,
                         std::vector<StagedUse>* uses) {
  absl::flat_hash_set<std::string> lost;
  for (const Node* node : stage.region->nodes) lost.insert(node->name());
  for (const StagedUse& use : *uses) lost.erase(use.name);
  for (StagedUse& use : *uses) {
    for (auto& [name, value] : use.attrs) {
      if (name != kColocationAttrName) continue;
      AttrValue kept;
      kept.mutable_list();
      for (const std::string& entry : value.list().s()) {
        absl::string_view node = entry;
        if (absl::ConsumePrefix(&node, kColocationGroupPrefix) &&
            lost.contains(node)) {
          continue;
        }
        kept.mutable_list()->add_s(entry);
      }
      value = std::move(kept);
    }
  }
}

void MoveEdges(const StagedUse& use, Node* stand_in, Graph* graph) {
  absl::flat_hash_set<const Node*> users;
  for (const StagedUse::OutEdge& edge : use.uses) users.insert(edge.dst);
  const std::vector<const Edge*> edges(use.node->out_edges().begin(),
                                       use.node->out_edges().end());
  for (const Edge* edge : edges) {
    if (users.contains(edge->dst())) graph->RemoveEdge(edge);
  }
  for (const StagedUse::OutEdge& edge : use.uses) {
    graph->AddEdge(stand_in, edge.src_output, edge.dst, edge.dst_input);
  }
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

Status FindStagedUses(const PlannedStage& stage,
                      const absl::flat_hash_set<std::string>& colocated_with,
                      Graph* graph, std::vector<StagedUse>* uses) {
  NodeSet region(stage.region->nodes.begin(), stage.region->nodes.end());
  region.insert(stage.puts.begin(), stage.puts.end());
  NodeSet asked_for(stage.region->sources.begin(), stage.region->sources.end());
  for (const StagedTensor& tensor : stage.region->boundary) {
    asked_for.insert(tensor.node);
  }
  for (const Node* planned : stage.region->nodes) {
    Node* node = graph->FindNodeId(planned->id());
    StagedUse use = FindUse(region, node);
    if (use.uses.empty() && !asked_for.contains(node) && !IsStandIn(*node) &&
        !colocated_with.contains(node->name())) {
      continue;
    }
    use.name = node->name();
    use.device = node->requested_device();
    for (const auto& [name, value] : node->attrs()) {
      if (IsKept(name)) use.attrs.emplace_back(name, value);
    }
    if (IsStandIn(*node)) TF_RETURN_IF_ERROR(FindPassedOn(*node, &use));
    uses->push_back(std::move(use));
  }
  DropLostColocations(stage, uses);
  return OkStatus();
}

Status AddStandIns(const PlannedStage& stage,
                   const std::vector<StagedUse>& uses,
                   const std::vector<PartialTensorShape>& shapes,
                   bool beside_take, Node* take, Graph* graph) {
  const std::vector<StagedTensor>& boundary = stage.region->boundary;
  std::map<const Node*, std::map<int, int>> carried;
  for (size_t i = 0; i < boundary.size(); ++i) {
    carried[boundary[i].node][boundary[i].index] = i;
  }
  for (const StagedUse& use : uses) {
    std::map<int, int> outputs = carried[use.node];
    for (const auto& [output, taken] : use.passed_on) {
      const auto of_source = carried.find(taken.node);
      if (of_source == carried.end()) continue;
      const auto it = of_source->second.find(taken.output);
      if (it != of_source->second.end()) outputs[output] = it->second;
    }
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(AddStandIn(stage.name,
                                  beside_take ? BesideTake(use, *take) : use,
                                  outputs, shapes, take, graph, &stand_in));
    MoveEdges(use, stand_in, graph);
  }
  if (stage.is_manual()) {
    graph->RemoveNode(graph->FindNodeId(stage.take->id()));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
