// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/training_nodes.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

// Stateful ops that read a resource and change nothing.
bool OnlyReads(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"ReadVariableOp", "ResourceGather", "ResourceGatherNd",
                 "VarIsInitializedOp", "VariableShape", "_ReadVariablesOp"});
  return kOps->contains(op);
}

// Ops that receive a reference to a variable and do not write to it.
bool OnlyPassesReference(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"IsVariableInitialized", "RefEnter", "RefExit", "RefIdentity",
                 "RefMerge", "RefNextIteration", "RefSelect", "RefSwitch"});
  return kOps->contains(op);
}

bool UpdatesState(const Node& node) {
  for (DataType type : node.input_types()) {
    if (IsRefType(type)) return !OnlyPassesReference(node.type_string());
  }
  return node.op_def().is_stateful() && !OnlyReads(node.type_string());
}

bool IsUpdate(const Node& node, const PartitionState& state) {
  return state.role(node) == NodeRole::kStepOnly && !IsSummary(node) &&
         UpdatesState(node);
}

// Adds to `found` the nodes of `roots`, and all nodes that they depend on.
void AddAncestors(const PartitionState& state,
                  const std::vector<const Node*>& roots,
                  std::vector<bool>* found) {
  std::vector<const Node*> to_visit;
  const auto add = [&](const Node* node) {
    if (!state.Counts(*node) || (*found)[node->id()]) return;
    (*found)[node->id()] = true;
    to_visit.push_back(node);
  };
  for (const Node* root : roots) add(root);
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    for (const Edge* edge : node->in_edges()) add(edge->src());
  }
}

}  // namespace

TrainingNodes FindTrainingNodes(const PartitionState& state) {
  std::vector<const Node*> updates;
  std::vector<const Node*> marked;
  for (const Node* node : state.graph().op_nodes()) {
    if (!state.Counts(*node)) continue;
    if (IsMarkedTarget(*node)) marked.push_back(node);
    if (IsUpdate(*node, state)) updates.push_back(node);
  }
  TrainingNodes training;
  training.lead_to_update.assign(state.graph().num_node_ids(), false);
  AddAncestors(state, updates, &training.lead_to_update);
  training.needed = training.lead_to_update;
  AddAncestors(state, marked, &training.needed);
  return training;
}

}  // namespace staging
}  // namespace tensorflow
