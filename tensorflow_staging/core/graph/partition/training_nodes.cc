// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/training_nodes.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"

namespace tensorflow {
namespace staging {
namespace {

bool UpdatesState(const Node& node, ResourceEffects* effects) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsRefType(node.input_type(i)) &&
        effects->Find({&node, i}) > ResourceEffect::kRead) {
      return true;
    }
  }
  return node.op_def().is_stateful() && !effects->OnlyReads(node);
}

bool IsUpdate(const Node& node, const PartitionState& state,
              ResourceEffects* effects) {
  return state.role(node) == NodeRole::kStepOnly && !IsSummary(node) &&
         UpdatesState(node, effects);
}

// Adds to `found` the nodes of `roots`, and all nodes that they or the other
// nodes of their constructs depend on.
void AddAncestors(const PartitionState& state,
                  const std::vector<const Node*>& roots,
                  std::vector<bool>* found) {
  std::vector<const Node*> to_visit;
  const auto add = [&](const Node* node) {
    if (!state.Counts(*node) || (*found)[node->id()]) return;
    for (const Node* other : state.SameSide(*node)) {
      (*found)[other->id()] = true;
      to_visit.push_back(other);
    }
  };
  for (const Node* root : roots) add(root);
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    for (const Edge* edge : node->in_edges()) add(edge->src());
  }
}

std::vector<const Node*> LastOf(const std::vector<const Node*>& updates) {
  std::vector<const Node*> inputs;
  for (const Node* update : updates) {
    for (const Edge* edge : update->in_edges()) {
      if (edge->src()->IsOp()) inputs.push_back(edge->src());
    }
  }
  const std::vector<const Node*> before = WithAncestors(inputs);
  const absl::flat_hash_set<const Node*> earlier(before.begin(), before.end());
  std::vector<const Node*> last;
  absl::c_copy_if(updates, std::back_inserter(last), [&](const Node* update) {
    return !earlier.contains(update);
  });
  return last;
}

}  // namespace

TrainingNodes FindTrainingNodes(const PartitionState& state) {
  ResourceEffects effects(state.graph().flib_def());
  std::vector<const Node*> updates;
  std::vector<const Node*> marked;
  for (const Node* node : state.graph().op_nodes()) {
    if (!state.Counts(*node)) continue;
    if (IsMarkedTarget(*node)) marked.push_back(node);
    if (IsUpdate(*node, state, &effects)) updates.push_back(node);
  }
  TrainingNodes training;
  training.lead_to_update.assign(state.graph().num_node_ids(), false);
  AddAncestors(state, updates, &training.lead_to_update);
  training.needed = training.lead_to_update;
  AddAncestors(state, marked, &training.needed);
  training.last_updates = LastOf(updates);
  return training;
}

}  // namespace staging
}  // namespace tensorflow
