// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/region_clones.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeBuilder::NodeOut;

// The names of the nodes that run ahead under other names.
using Names = absl::flat_hash_set<std::string>;

Names NamesOfRegion(const PlannedStage& stage) {
  Names names;
  for (const Node* node : stage.region->nodes) {
    if (node != stage.take) names.insert(node->name());
  }
  return names;
}

std::string CloneName(const CloneOptions& options, absl::string_view original) {
  return absl::StrCat(options.scope, "/", original);
}

// Returns the colocation of the clone of a node with the colocation `original`:
// with the clones of nodes of the region. A colocation with another node stays
// as it is, unless the clone moves to the CPU.
std::vector<std::string> ColocationOfClone(
    const std::vector<std::string>& original, const Names& region,
    const CloneOptions& options) {
  std::vector<std::string> kept;
  for (const std::string& entry : original) {
    absl::string_view name = entry;
    if (absl::ConsumePrefix(&name, kColocationGroupPrefix) &&
        region.contains(name)) {
      kept.push_back(
          absl::StrCat(kColocationGroupPrefix, CloneName(options, name)));
    } else if (!options.on_cpu) {
      kept.push_back(entry);
    }
  }
  return kept;
}

// Turns `node`, a copy of a node of the region, into the clone.
void BecomeClone(const Names& region, const CloneOptions& options,
                 const CloneMark& mark, Node* node) {
  std::vector<std::string> colocation;
  if (TryGetNodeAttr(node->attrs(), kColocationAttrName, &colocation)) {
    node->ClearAttr(kColocationAttrName);
    colocation = ColocationOfClone(colocation, region, options);
    if (!colocation.empty()) node->AddAttr(kColocationAttrName, colocation);
  }
  // In one run, the Enters of a frame's name must all be of one loop. A run may
  // compute the clones for several Puts of a manual stage.
  std::string frame;
  if (node->IsEnter() &&
      TryGetNodeAttr(node->attrs(), kFrameNameAttr, &frame)) {
    node->ClearAttr(kFrameNameAttr);
    node->AddAttr(kFrameNameAttr, CloneName(options, frame));
  }
  if (options.on_cpu) node->set_requested_device(CpuOfTask(*node));
  // When a graph is extended, TensorFlow gives a stateful node the device that
  // the node of its name had before. That was the stand-in.
  node->set_assigned_device_name("");
  // Error messages name the user's node.
  node->set_original_node_names({mark.original});
  node->set_name(CloneName(options, mark.original));
  MarkClone(mark, node);
}

// Checks that `put` puts records of the types that the Take of its stage takes.
Status CheckPutFitsTake(const PlannedStage& stage, const Node& put) {
  if (put.input_types() == stage.take->output_types()) return OkStatus();
  return errors::InvalidArgument(
      "Node '", put.name(), "' of stage '", stage.name, "' puts records of ",
      DataTypeVectorString(put.input_types()), ", but node '",
      stage.take->name(), "' takes records of ",
      DataTypeVectorString(stage.take->output_types()),
      "; both must have the same types.");
}

// The tensor that `put` puts into place `index` of its record.
Status GetPutInput(const Node& put, int index, NodeOut* input) {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(put.input_edge(index, &edge));
  *input = NodeOut(edge->src(), edge->src_output());
  return OkStatus();
}

// An input of a clone.
struct Input {
  Node* node;
  int output;
  int clone_input;
};

// Finds the inputs of the clone of `node`. Adds to `mark` those that `node` has
// from the Take of a manual stage.
Status FindInputs(const PlannedStage& stage, const Node* put, const Node& node,
                  const RegionClones& clones, const CloneOptions& options,
                  CpuCopies* copies, Graph* graph, CloneMark* mark,
                  std::vector<Input>* inputs) {
  for (const Edge* edge : node.in_edges()) {
    Node* input = edge->src();
    if (!input->IsOp()) continue;
    if (input == stage.take) {
      mark->taken_inputs.push_back({edge->dst_input(), edge->src_output()});
      // The stage's own run computes the Put's inputs, so the clone has no Take
      // to wait for.
      if (edge->IsControlEdge()) continue;
      NodeOut out;
      TF_RETURN_IF_ERROR(GetPutInput(*put, edge->src_output(), &out));
      inputs->push_back({out.node, out.index, edge->dst_input()});
      continue;
    }
    const auto it = clones.of.find(input);
    if (it != clones.of.end()) {
      input = it->second;
    } else if (options.on_cpu) {
      TF_RETURN_IF_ERROR(
          CopyToCpu(input, options.scope, graph, copies, &input));
    }
    inputs->push_back({input, edge->src_output(), edge->dst_input()});
  }
  return OkStatus();
}

// Whether TensorFlow may replace `node` by nodes of its functions, which do not
// have its marks.
bool MayBeLowered(const Node& node) {
  return node.attrs().Find("_lower_using_switch_merge") != nullptr ||
         node.IsFunctionCall() || node.IsIfNode() || node.IsWhileNode() ||
         node.IsCaseNode();
}

// Puts an identity, which keeps its mark, before each input that `mark` says is
// from a Take.
Status MarkIdentitiesInstead(const CloneOptions& options, const Node& node,
                             Graph* graph, CloneMark* mark,
                             std::vector<Input>* inputs) {
  for (const TakenInput& taken : mark->taken_inputs) {
    for (Input& input : *inputs) {
      if (input.clone_input != taken.input ||
          taken.input == Graph::kControlSlot) {
        continue;
      }
      const std::string original =
          absl::StrCat(mark->original, "/taken_", taken.input);
      Node* identity = nullptr;
      TF_RETURN_IF_ERROR(NodeBuilder(CloneName(options, original), "Identity")
                             .Input(input.node, input.output)
                             .Device(options.on_cpu ? CpuOfTask(node)
                                                    : node.requested_device())
                             .Finalize(graph, &identity));
      MarkClone({mark->stage, original, {{0, taken.take_output}}, std::nullopt},
                identity);
      input.node = identity;
      input.output = 0;
    }
  }
  mark->taken_inputs.clear();
  return OkStatus();
}

}  // namespace

Status CloneRegion(const PlannedStage& stage, const Node* put,
                   const CloneOptions& options, CpuCopies* copies, Graph* graph,
                   RegionClones* clones) {
  if (put != nullptr) TF_RETURN_IF_ERROR(CheckPutFitsTake(stage, *put));
  for (const Node* node : stage.region->nodes) {
    if (node != stage.take) clones->of[node] = graph->CopyNode(node);
  }
  const Names region = NamesOfRegion(stage);
  for (const Node* node : stage.region->nodes) {
    if (node == stage.take) continue;
    Node* clone = clones->of.at(node);
    CloneMark mark = {stage.name, node->name(), {}, std::nullopt};
    TF_RETURN_IF_ERROR(ReadStandInMark(*node, &mark.passes_on));
    std::vector<Input> inputs;
    TF_RETURN_IF_ERROR(FindInputs(stage, put, *node, *clones, options, copies,
                                  graph, &mark, &inputs));
    if (MayBeLowered(*node)) {
      TF_RETURN_IF_ERROR(
          MarkIdentitiesInstead(options, *node, graph, &mark, &inputs));
    }
    for (const Input& input : inputs) {
      graph->AddEdge(input.node, input.output, clone, input.clone_input);
    }
    BecomeClone(region, options, mark, clone);
  }
  for (const StagedTensor& tensor : stage.region->boundary) {
    NodeOut& carried = clones->record.emplace_back();
    if (tensor.node == stage.take) {
      TF_RETURN_IF_ERROR(GetPutInput(*put, tensor.index, &carried));
    } else {
      // The Put of a manual stage may put what is no node of the region.
      const auto it = clones->of.find(tensor.node);
      carried = NodeOut(
          it == clones->of.end() ? Mutable(tensor.node, graph) : it->second,
          tensor.index);
    }
  }
  for (const Node* node : stage.region->control_boundary) {
    if (node != stage.take)
      clones->control_inputs.push_back(clones->of.at(node));
  }
  if (stage.is_manual()) {
    for (const Edge* edge : stage.take->in_edges()) {
      const auto it = clones->of.find(edge->src());
      if (it != clones->of.end()) clones->control_inputs.push_back(it->second);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
