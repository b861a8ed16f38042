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
    counts_[node->id()] = filter(*node);
    if (!counts_[node->id()]) {
      reasons_[node->id()] = {StepReason::kAddedLater, node};
    }
  }
  nodes_.assign(size, nullptr);
  for (const Node* node : graph.nodes()) nodes_[node->id()] = node;
  control_flow_ = FindControlFlow(graph, counts_);
  moved_constructs_.assign(control_flow_.constructs.size(), false);
  roles_.assign(size, NodeRole::kPure);
  source_set_.assign(size, InternedSets::kEmpty);
  runs_once_.assign(size, false);
  joined_set_.assign(size, InternedSets::kEmpty);
  joined_training_source_.assign(size, false);
  once_per_record_.assign(size, false);
  training_.assign(size, false);
  lead_to_update_.assign(size, false);
  training_source_.assign(size, false);
  needed_.assign(size, false);
  leads_to_set_.assign(size, InternedSets::kEmpty);
}

absl::Span<const Node* const> PartitionState::SameSide(const Node& node) const {
  const int construct = control_flow_.construct_of[node.id()];
  if (construct == ControlFlow::kNoConstruct) {
    return absl::MakeConstSpan(&nodes_[node.id()], 1);
  }
  return control_flow_.constructs[construct];
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
    const int construct = control_flow_.construct_of[node->id()];
    if (construct != ControlFlow::kNoConstruct &&
        !moved_constructs_[construct]) {
      moved_constructs_[construct] = true;
      for (const Node* other : control_flow_.constructs[construct]) {
        MoveToStep(*other, reasons_[node->id()]);
      }
    }
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
      if (Counts(*edge->src()) && !IsBackEdge(*edge)) ++missing[node->id()];
    }
    if (missing[node->id()] == 0) order_.push_back(node);
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    for (const Edge* edge : order_[i]->out_edges()) {
      const Node* next = edge->dst();
      if (IsCandidate(*next) && !IsBackEdge(*edge) &&
          --missing[next->id()] == 0) {
        order_.push_back(next);
      }
    }
  }
}

void PartitionState::AnalyzeCandidates() {
  FindSources();
  JoinSources();
  FindNeeded();
  FindWhatDrawsLeadTo();
}

void PartitionState::FindSources() {
  std::vector<const Node*> changed;
  for (const Node* node : order_) {
    if (InStep(*node)) continue;
    const int id = node->id();
    source_set_[id] = InternedSets::kEmpty;
    training_source_[id] = false;
    if (roles_[id] == NodeRole::kSource) {
      source_set_[id] = source_sets_.Single(source_index_.at(node));
      training_source_[id] = lead_to_update_[id];
    }
    runs_once_[id] = roles_[id] == NodeRole::kOncePerRecord;
    for (const Edge* edge : node->in_edges()) {
      if (Counts(*edge->src()) && !IsBackEdge(*edge)) {
        AddSources(*edge->src(), *node);
      }
    }
    if (node->IsNextIteration()) changed.push_back(node);
  }
  // What is known at the end of an iteration also holds at its beginning.
  while (!changed.empty()) {
    const Node* node = changed.back();
    changed.pop_back();
    for (const Edge* edge : node->out_edges()) {
      if (IsCandidate(*edge->dst()) && AddSources(*node, *edge->dst())) {
        changed.push_back(edge->dst());
      }
    }
  }
}

bool PartitionState::AddSources(const Node& node, const Node& next) {
  const InternedSets::Id set =
      source_sets_.Union(source_set_[next.id()], source_set_[node.id()]);
  const bool training =
      training_source_[next.id()] || training_source_[node.id()];
  const bool once = runs_once_[next.id()] || runs_once_[node.id()];
  const bool changes = set != source_set_[next.id()] ||
                       training != training_source_[next.id()] ||
                       once != runs_once_[next.id()];
  source_set_[next.id()] = set;
  training_source_[next.id()] = training;
  runs_once_[next.id()] = once;
  return changes;
}

void PartitionState::JoinSources() {
  joined_set_.assign(joined_set_.size(), InternedSets::kEmpty);
  joined_training_source_.assign(joined_training_source_.size(), false);
  once_per_record_.assign(once_per_record_.size(), false);
  for (const Node* node : order_) {
    if (InStep(*node)) continue;
    const int first = First(*node);
    joined_set_[first] =
        source_sets_.Union(joined_set_[first], source_set_[node->id()]);
    joined_training_source_[first] =
        joined_training_source_[first] || training_source_[node->id()];
    once_per_record_[first] = once_per_record_[first] || runs_once_[node->id()];
  }
}

void PartitionState::FindNeeded() {
  needed_.assign(needed_.size(), false);
  std::vector<const Node*> found;
  const auto need = [&](const Node& node) {
    if (needed_[First(node)] || !MayBeNeeded(node)) return;
    needed_[First(node)] = true;
    for (const Node* other : SameSide(node)) found.push_back(other);
  };
  for (const Node* node : order_) {
    if (InStep(*node)) continue;
    for (const Edge* edge : node->out_edges()) {
      if (Counts(*edge->dst()) && InStep(*edge->dst())) need(*node);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Edge* edge : found[i]->in_edges()) {
      if (Counts(*edge->src())) need(*edge->src());
    }
  }
}

void PartitionState::FindWhatDrawsLeadTo() {
  leads_to_set_.assign(leads_to_set_.size(), InternedSets::kEmpty);
  std::vector<const Node*> changed;
  const auto lead = [&](const Node& draw, InternedSets::Id sources) {
    InternedSets::Id& set = leads_to_set_[First(draw)];
    sources = source_sets_.Union(set, sources);
    if (sources == set) return;
    set = sources;
    for (const Node* other : SameSide(draw)) changed.push_back(other);
  };
  const auto lead_inputs = [&](const Node& node, InternedSets::Id sources) {
    for (const Edge* edge : node.in_edges()) {
      if (Counts(*edge->src()) && IsDraw(*edge->src())) {
        lead(*edge->src(), sources);
      }
    }
  };
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    if (!InStep(**it) && DependsOnSource(**it) && needed_[First(**it)]) {
      lead_inputs(**it, JoinedSources(**it));
    }
  }
  while (!changed.empty()) {
    const Node* node = changed.back();
    changed.pop_back();
    lead_inputs(*node, leads_to_set_[First(*node)]);
  }
}

bool PartitionState::IsUser(const Node& node) const {
  if (!Counts(node)) return false;
  const int construct = control_flow_.construct_of[node.id()];
  return construct == ControlFlow::kNoConstruct ||
         control_flow_.has_result[construct] || InStep(node) ||
         needed_[First(node)];
}

bool PartitionState::IsStaged(const Node& node) const {
  return IsCandidate(node) && needed_[First(node)] &&
         JoinedSources(node) != InternedSets::kEmpty;
}

}  // namespace staging
}  // namespace tensorflow
