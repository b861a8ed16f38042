// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/node_sides.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/report/run_once.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"

namespace tensorflow {
namespace staging {

NodeSides::NodeSides(const Graph& graph, const StagePlan& plan,
                     const PlannedLookups* lookups, AlignedWith aligned)
    : graph_(graph),
      plan_(plan),
      lookups_(lookups),
      partition_(plan.partition()) {
  if (partition_ == nullptr) {
    without_smart_stage_ = std::make_unique<StagePartition>(
        graph, NodeFilter(), RecordContent::kElements, /*stale=*/nullptr,
        GivenRoles(), aligned);
    partition_ = without_smart_stage_.get();
  }
  FindReasons();
  FindSides();
}

// Reads the reasons of SmartStage's partition. Those of the partition for
// lookups replace the reasons that are about variables.
void NodeSides::FindReasons() {
  why_.resize(graph_.num_node_ids());
  for (const Node* node : graph_.op_nodes()) {
    why_[node->id()] = {node, partition_->WhyNot(*node)};
  }
  if (lookups_ == nullptr) return;
  absl::flat_hash_map<absl::string_view, const Node*> by_name;
  for (const Node* node : lookups_->graph.op_nodes()) {
    by_name[node->name()] = node;
  }
  for (const Node* node : graph_.op_nodes()) {
    Why& why = why_[node->id()];
    const auto it = by_name.find(node->name());
    if (it == by_name.end() || (plan_.partition() != nullptr &&
                                why.reason.reason != StepReason::kVariable)) {
      continue;
    }
    why = {it->second, lookups_->plan->partition()->WhyNot(*it->second)};
  }
}

void NodeSides::FindSides() {
  side_.assign(graph_.num_node_ids(), StageReport::kStep);
  for (const Node* node : graph_.op_nodes()) {
    if (WhyNot(*node).reason.reason == StepReason::kNoSource) {
      side_[node->id()] = StageReport::kShared;
    }
  }
  for (size_t i = 0; i < plan_.stages().size(); ++i) {
    const PlannedStage& stage = plan_.stages()[i];
    if (stage.is_manual()) AssignManualStage(stage, i);
    if (stage.region == nullptr) continue;
    for (const Node* node : stage.region->nodes) side_[node->id()] = i;
  }
  FindSidesOfLookups();
  const std::vector<bool> once = FindNodesThatRunOnce(graph_);
  for (const Node* node : graph_.op_nodes()) {
    int& side = side_[node->id()];
    if (once[node->id()] && !IsStaged(*node) && side != StageReport::kControl) {
      side = StageReport::kOnce;
    }
  }
}

void NodeSides::FindSidesOfLookups() {
  if (lookups_ == nullptr) return;
  absl::flat_hash_map<absl::string_view, int> index_of;
  for (size_t i = 0; i < lookups_->plan->stages().size(); ++i) {
    for (const Node* node : lookups_->plan->stages()[i].region->nodes) {
      if (!IsBufferTake(*node) && !IsStandIn(*node)) {
        index_of[node->name()] = plan_.stages().size() + i;
      }
    }
  }
  for (const Node* node : graph_.op_nodes()) {
    const auto it = index_of.find(node->name());
    if (it != index_of.end()) side_[node->id()] = it->second;
  }
}

// Returns whether a node is a variable or a table, and not one that depends
// on it.
bool NodeSides::HoldsState(const Node& node) const {
  const LocatedReason why = partition_->WhyNot(node);
  return why.node == &node && (why.reason == StepReason::kVariable ||
                               why.reason == StepReason::kTable);
}

// Assigns to `stage` its Puts, its Take and all nodes that lead to its Puts,
// except shared nodes, nodes that hold state and nodes of other stages.
void NodeSides::AssignManualStage(const PlannedStage& stage, int index) {
  for (const Node* node : stage.control_ops) {
    side_[node->id()] = StageReport::kControl;
  }
  side_[stage.take->id()] = index;
  for (const Node* put : stage.puts) side_[put->id()] = index;
  for (const Node* node : WithAncestors(stage.puts, [this](const Edge& edge) {
         const Node& input = *edge.src();
         return !IsBufferTake(input) && !HoldsState(input) &&
                side_[input.id()] == StageReport::kStep;
       })) {
    side_[node->id()] = index;
  }
}

}  // namespace staging
}  // namespace tensorflow
