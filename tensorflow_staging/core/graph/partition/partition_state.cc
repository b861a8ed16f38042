// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

PartitionState::PartitionState(const Graph& graph, const NodeFilter& filter)
    : graph_(graph), resources_(graph, filter) {
  const int size = graph.num_node_ids();
  counts_.assign(size, false);
  reasons_.assign(size, LocatedReason());
  for (const Node* node : graph.op_nodes()) {
    counts_[node->id()] = filter == nullptr || filter(*node);
    if (!counts_[node->id()]) {
      reasons_[node->id()] = {StepReason::kAddedLater, node};
    }
  }
  roles_.assign(size, NodeRole::kPure);
  source_set_.assign(size, InternedSets::kEmpty);
  once_per_record_.assign(size, false);
  training_.assign(size, false);
  lead_to_update_.assign(size, false);
  training_source_.assign(size, false);
  needed_.assign(size, false);
  leads_to_set_.assign(size, InternedSets::kEmpty);
}

void PartitionState::SetRole(const Node& node, NodeRole role) {
  roles_[node.id()] = role;
  if (role != NodeRole::kSource) return;
  source_index_.emplace(&node, sources_.size());
  sources_.push_back(&node);
}

void PartitionState::MoveToStep(const Node& node, const LocatedReason& reason) {
  if (InStep(node)) return;
  reasons_[node.id()] = reason;
  moved_.push_back(&node);
}

bool PartitionState::SpreadToDependents() {
  const bool any = !moved_.empty();
  // Breadth first, so that each node gets the reason of the nearest moved node.
  while (!moved_.empty()) {
    const Node* node = moved_.front();
    moved_.pop_front();
    for (const Edge* edge : node->in_edges()) {
      const Node* input = edge->src();
      if (IsDraw(*input) && IsStaged(*input)) {
        MoveToStep(*input, {StepReason::kOncePerRecordOnBothSides, input});
      }
    }
    for (const Edge* edge : node->out_edges()) {
      if (Counts(*edge->dst())) MoveToStep(*edge->dst(), reasons_[node->id()]);
    }
  }
  return any;
}

void PartitionState::OrderCandidates() {
  std::vector<int> missing(graph_.num_node_ids(), 0);
  for (const Node* node : graph_.op_nodes()) {
    if (InStep(*node)) continue;
    for (const Edge* edge : node->in_edges()) {
      if (Counts(*edge->src())) ++missing[node->id()];
    }
    if (missing[node->id()] == 0) order_.push_back(node);
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    for (const Edge* edge : order_[i]->out_edges()) {
      const Node* next = edge->dst();
      if (Counts(*next) && !InStep(*next) && --missing[next->id()] == 0) {
        order_.push_back(next);
      }
    }
  }
}

void PartitionState::AnalyzeCandidates() {
  for (const Node* node : order_) {
    if (InStep(*node)) continue;
    const int id = node->id();
    InternedSets::Id set = InternedSets::kEmpty;
    bool training_source = false;
    bool once = roles_[id] == NodeRole::kOncePerRecord;
    if (roles_[id] == NodeRole::kSource) {
      set = source_sets_.Single(source_index_.at(node));
      training_source = lead_to_update_[id];
    }
    for (const Edge* edge : node->in_edges()) {
      if (!Counts(*edge->src())) continue;
      set = source_sets_.Union(set, source_set_[edge->src()->id()]);
      training_source = training_source || training_source_[edge->src()->id()];
      once = once || once_per_record_[edge->src()->id()];
    }
    source_set_[id] = set;
    training_source_[id] = training_source;
    once_per_record_[id] = once;
  }
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    const Node* node = *it;
    if (InStep(*node)) continue;
    bool needed = false;
    InternedSets::Id leads_to = InternedSets::kEmpty;
    for (const Edge* edge : node->out_edges()) {
      const Node* next = edge->dst();
      if (!Counts(*next)) continue;
      needed = needed || InStep(*next) || needed_[next->id()];
      if (IsDraw(*node) && IsStaged(*next)) {
        leads_to = source_sets_.Union(leads_to, IsDraw(*next)
                                                    ? leads_to_set_[next->id()]
                                                    : source_set_[next->id()]);
      }
    }
    needed_[node->id()] =
        needed && (training_[node->id()] || !training_source_[node->id()]);
    leads_to_set_[node->id()] = leads_to;
  }
}

bool PartitionState::IsStaged(const Node& node) const {
  return Counts(node) && !InStep(node) && needed_[node.id()] &&
         (source_set_[node.id()] != InternedSets::kEmpty ||
          leads_to_set_[node.id()] != InternedSets::kEmpty);
}

}  // namespace staging
}  // namespace tensorflow
