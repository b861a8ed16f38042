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
#include "tensorflow_staging/core/graph/rewrite/stage_on_cpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;
using NodeOut = NodeBuilder::NodeOut;

// An edge that outlives its source.
struct OutEdge {
  int src_output;
  Node* dst;
  int dst_input;
};

// The edges by which the step uses `node`.
std::vector<OutEdge> OutEdgesToStep(const Node& node, const NodeSet& staged) {
  std::vector<OutEdge> edges;
  for (const Edge* edge : node.out_edges()) {
    if (edge->dst()->IsOp() && !staged.contains(edge->dst())) {
      edges.push_back({edge->src_output(), edge->dst(), edge->dst_input()});
    }
  }
  return edges;
}

std::vector<int> OutputsUsedAhead(const Node& node, const NodeSet& staged) {
  std::set<int> outputs;
  for (const Edge* edge : node.out_edges()) {
    if (!edge->IsControlEdge() && staged.contains(edge->dst())) {
      outputs.insert(edge->src_output());
    }
  }
  return std::vector<int>(outputs.begin(), outputs.end());
}

// What the step takes of a stage.
struct Taken {
  Node* take;
  // Outputs of the Take, by node and output.
  std::map<std::pair<const Node*, int>, int> outputs;
  // By output of the Take.
  const std::vector<PartialTensorShape>& shapes;
};

// Whether a stand-in has the attribute `name` of its node. The runtime looks
// for a function to compile where a node has to be compiled by XLA; that is the
// clone.
bool IsKept(absl::string_view name) {
  return absl::StartsWith(name, "_") && name != "_XlaMustCompile";
}

// Makes a node of the name of `node` that passes on what is taken of it.
Status MakeStandIn(const std::string& stage, const Node& node,
                   const Taken& taken, Graph* graph, Node** stand_in) {
  std::vector<NodeOut> values;
  std::vector<int> indices;
  std::vector<PartialTensorShape> shapes(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto it = taken.outputs.find({&node, i});
    if (it == taken.outputs.end()) continue;
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
    builder = std::make_unique<NodeBuilder>(node.name(), "StagedNode");
    builder->Input(values)
        .Attr("dtypes", node.output_types())
        .Attr("indices", indices)
        .Attr("shapes", shapes)
        .Attr("stage", stage);
    is_staged_node = true;
  }
  // Whoever runs or waits for the node still advances to the next record.
  if (values.empty()) builder->ControlInput(taken.take);
  for (const auto& [name, value] : node.attrs()) {
    if (IsKept(name)) builder->Attr(name, value);
  }
  // The placer would take a StagedNode to an accelerator, strings or not.
  const bool anywhere = node.requested_device().empty() &&
                        node.attrs().Find(kColocationAttrName) == nullptr;
  builder->Device(anywhere && is_staged_node ? CpuOfTask(node)
                                             : node.requested_device());
  return builder->Finalize(graph, stand_in);
}

}  // namespace

Status ReplaceByStandIns(const PlannedStage& stage,
                         const std::vector<PartialTensorShape>& shapes,
                         Node* take, Graph* graph) {
  const StagedRegion& region = *stage.region;
  const NodeSet staged(region.nodes.begin(), region.nodes.end());
  Taken taken = {take, {}, shapes};
  for (size_t i = 0; i < region.boundary.size(); ++i) {
    taken.outputs[{region.boundary[i].node, region.boundary[i].index}] = i;
  }
  std::vector<std::pair<Node*, std::vector<OutEdge>>> stand_ins;
  for (const Node* node : region.nodes) {
    Node* stand_in = nullptr;
    TF_RETURN_IF_ERROR(MakeStandIn(stage.name, *node, taken, graph, &stand_in));
    MarkStandIn({stage.name, OutputsUsedAhead(*node, staged)}, stand_in);
    stand_ins.emplace_back(stand_in, OutEdgesToStep(*node, staged));
  }
  for (const Node* node : region.nodes) {
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
