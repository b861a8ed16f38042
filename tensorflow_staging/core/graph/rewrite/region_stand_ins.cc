// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/stage_on_cpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;
using NodeOut = NodeBuilder::NodeOut;

// An edge of a node that will be removed, to be given to the node's stand-in.
struct OutEdge {
  int src_output;
  Node* dst;
  int dst_input;
};

// The edges from `node`, a node of the region, to nodes outside the region.
std::vector<OutEdge> OutEdgesToStep(const Node& node, const NodeSet& region) {
  std::vector<OutEdge> edges;
  for (const Edge* edge : node.out_edges()) {
    if (edge->dst()->IsOp() && !region.contains(edge->dst())) {
      edges.push_back({edge->src_output(), edge->dst(), edge->dst_input()});
    }
  }
  return edges;
}

std::vector<int> OutputsUsedInRegion(const Node& node, const NodeSet& region) {
  std::set<int> outputs;
  for (const Edge* edge : node.out_edges()) {
    if (!edge->IsControlEdge() && region.contains(edge->dst())) {
      outputs.insert(edge->src_output());
    }
  }
  return std::vector<int>(outputs.begin(), outputs.end());
}

// The tensors that a stage's Take yields to the step.
struct TakenTensors {
  Node* take;
  // The output of the Take that carries an output of a node of the region, by
  // that node and the index of its output.
  std::map<std::pair<const Node*, int>, int> take_outputs;
  // By output of the Take.
  const std::vector<PartialTensorShape>& shapes;
};

// Whether a stand-in keeps the attribute `name` of its node. Only the clone
// keeps _XlaMustCompile, which makes the runtime look for a function to compile
// with the name of the node's op.
bool IsKept(absl::string_view name) {
  return absl::StartsWith(name, "_") && name != "_XlaMustCompile";
}

// Adds the stand-in of `node`, which passes on those of its outputs that are in
// `taken`.
Status AddStandIn(const std::string& stage, const Node& node,
                  const TakenTensors& taken, Graph* graph, Node** stand_in) {
  std::vector<NodeOut> values;
  std::vector<int> indices;
  std::vector<PartialTensorShape> shapes(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto it = taken.take_outputs.find({&node, i});
    if (it == taken.take_outputs.end()) continue;
    values.emplace_back(taken.take, it->second);
    indices.push_back(i);
    shapes[i] = taken.shapes[it->second];
  }
  std::unique_ptr<NodeBuilder> builder;
  bool is_staged_node = false;
  if (node.num_outputs() == 0) {
    builder = std::make_unique<NodeBuilder>(node.name(), "NoOp");
  } else if (node.num_outputs() == 1 && !values.empty()) {
    builder = std::make_unique<NodeBuilder>(node.name(), "Identity");
    builder->Input(values.front());
  } else {
    builder = std::make_unique<NodeBuilder>(node.name(), kStagedNodeOp);
    builder->Input(values)
        .Attr(kDtypesAttr, node.output_types())
        .Attr(kIndicesAttr, indices)
        .Attr(kShapesAttr, shapes)
        .Attr(kStageNameAttr, stage);
    is_staged_node = true;
  }
  // Running this node, or waiting for it, still takes the next record.
  if (values.empty()) builder->ControlInput(taken.take);
  for (const auto& [name, value] : node.attrs()) {
    if (IsKept(name)) builder->Attr(name, value);
  }
  // Without a device, the placer would put the StagedNode on an accelerator,
  // even if it passes on strings.
  const bool unconstrained = node.requested_device().empty() &&
                             node.attrs().Find(kColocationAttrName) == nullptr;
  builder->Device(unconstrained && is_staged_node ? CpuOfTask(node)
                                                  : node.requested_device());
  return builder->Finalize(graph, stand_in);
}

}  // namespace

Status ReplaceByStandIns(const PlannedStage& stage,
                         const std::vector<PartialTensorShape>& shapes,
                         Node* take, Graph* graph) {
  const std::vector<const Node*>& nodes = stage.region->nodes;
  const std::vector<StagedTensor>& boundary = stage.region->boundary;
  const NodeSet region(nodes.begin(), nodes.end());
  TakenTensors taken = {take, {}, shapes};
  for (size_t i = 0; i < boundary.size(); ++i) {
    taken.take_outputs[{boundary[i].node, boundary[i].index}] = i;
  }
  std::vector<std::pair<Node*, std::vector<OutEdge>>> stand_ins;
  for (const Node* node : nodes) {
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(AddStandIn(stage.name, *node, taken, graph, &stand_in));
    MarkStandIn({stage.name, OutputsUsedInRegion(*node, region)}, stand_in);
    stand_ins.emplace_back(stand_in, OutEdgesToStep(*node, region));
  }
  for (const Node* node : nodes) {
    graph->RemoveNode(graph->FindNodeId(node->id()));
  }
  for (const auto& [stand_in, edges] : stand_ins) {
    for (const OutEdge& edge : edges) {
      graph->AddEdge(stand_in, edge.src_output, edge.dst, edge.dst_input);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
