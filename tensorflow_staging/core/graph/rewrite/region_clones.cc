// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/region_clones.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeBuilder::NodeOut;
using Names = absl::flat_hash_set<absl::string_view>;

// The names of the nodes that CloneRegion clones.
Names ClonedNames(const PlannedStage& stage) {
  Names names;
  for (const Node* node : stage.region->nodes) {
    if (node != stage.take) names.insert(node->name());
  }
  return names;
}

// Colocates the clone `def` with the clones of the nodes with which its
// original was colocated. A colocation with a node that is not cloned stays as
// it is, unless the clone moves to the CPU.
void ColocateWithClones(const Names& cloned, const CloneOptions& options,
                        NodeDef* def) {
  auto it = def->mutable_attr()->find(kColocationAttrName);
  if (it == def->mutable_attr()->end()) return;
  AttrValue kept;
  for (const std::string& entry : it->second.list().s()) {
    absl::string_view name = entry;
    if (absl::ConsumePrefix(&name, kColocationGroupPrefix) &&
        cloned.contains(name)) {
      kept.mutable_list()->add_s(
          absl::StrCat(kColocationGroupPrefix, options.scope, "/", name));
    } else if (!options.on_cpu) {
      kept.mutable_list()->add_s(entry);
    }
  }
  if (kept.list().s().empty()) {
    def->mutable_attr()->erase(it);
  } else {
    it->second = std::move(kept);
  }
}

// The NodeDef of the clone of `node`, without inputs.
NodeDef CloneDef(const Node& node, const Names& cloned,
                 const CloneOptions& options) {
  NodeDef def = node.def();
  def.clear_input();
  def.set_name(absl::StrCat(options.scope, "/", node.name()));
  // Error messages name the user's node.
  def.mutable_experimental_debug_info()->clear_original_node_names();
  def.mutable_experimental_debug_info()->add_original_node_names(node.name());
  ColocateWithClones(cloned, options, &def);
  if (options.on_cpu) def.set_device(CpuOfTask(node));
  if (options.stream_id != 0) {
    AddNodeAttr(kStreamAttr, options.stream_id, &def);
  }
  return def;
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

}  // namespace

Status CloneRegion(const PlannedStage& stage, const Node* put,
                   const CloneOptions& options, CpuCopies* copies, Graph* graph,
                   RegionClones* clones) {
  if (put != nullptr) TF_RETURN_IF_ERROR(CheckPutFitsTake(stage, *put));
  const Names cloned = ClonedNames(stage);
  absl::flat_hash_map<const Node*, Node*> clone_of;
  for (const Node* node : stage.region->nodes) {
    if (node == stage.take) continue;
    Status status;
    Node* clone = graph->AddNode(CloneDef(*node, cloned, options), &status);
    TF_RETURN_IF_ERROR(status);
    clone_of[node] = clone;
    bool root = true;
    CloneMark mark = {stage.name, node->name(), {}};
    for (const Edge* edge : node->in_edges()) {
      Node* input = edge->src();
      if (!input->IsOp()) continue;
      if (input == stage.take) {
        mark.taken_inputs.push_back({edge->dst_input(), edge->src_output()});
        // The stage's own run computes the Put's inputs, so the clone has no
        // Take to wait for.
        if (edge->IsControlEdge()) continue;
        NodeOut out;
        TF_RETURN_IF_ERROR(GetPutInput(*put, edge->src_output(), &out));
        graph->AddEdge(out.node, out.index, clone, edge->dst_input());
        continue;
      }
      const auto it = clone_of.find(input);
      if (it != clone_of.end()) {
        input = it->second;
        root = false;
      } else if (options.on_cpu) {
        TF_RETURN_IF_ERROR(
            CopyToCpu(input, options.scope, graph, copies, &input));
      }
      graph->AddEdge(input, edge->src_output(), clone, edge->dst_input());
    }
    MarkClone(mark, clone);
    if (root) clones->roots.push_back(clone);
  }

  for (const StagedTensor& tensor : stage.region->boundary) {
    NodeOut& carried = clones->record.emplace_back();
    if (tensor.node == stage.take) {
      TF_RETURN_IF_ERROR(GetPutInput(*put, tensor.index, &carried));
    } else {
      carried = NodeOut(clone_of.at(tensor.node), tensor.index);
    }
  }
  for (const Node* node : stage.region->control_boundary) {
    if (node != stage.take) clones->control_inputs.push_back(clone_of.at(node));
  }
  if (stage.is_manual()) {
    for (const Edge* edge : stage.take->in_edges()) {
      const auto it = clone_of.find(edge->src());
      if (it != clone_of.end()) clones->control_inputs.push_back(it->second);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
