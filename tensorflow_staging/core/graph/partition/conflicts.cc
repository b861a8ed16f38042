// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/conflicts.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/graph/facts/resources.h"
#include "tensorflow_staging/core/graph/facts/union_find.h"

namespace tensorflow {
namespace staging {
namespace {

bool ResolveHandles(PartitionState* state) {
  for (const Node* node : state->order()) {
    if (state->role(*node) == NodeRole::kHandle && state->IsStaged(*node)) {
      state->MoveToStep(*node, {StepReason::kSideEffect, node});
    }
  }
  return state->SpreadToDependents();
}

// A step that uses one result of a construct takes a record, and so advances
// all sources of the construct. Without the stage, it would only advance the
// sources of that result.
bool ResolveConstructs(PartitionState* state) {
  const ControlFlow& control_flow = state->control_flow();
  // Whether a user outside its construct makes `node` a result.
  const auto is_result = [&](const Node& node) {
    for (const Edge* edge : node.out_edges()) {
      if (state->IsUser(*edge->dst()) &&
          control_flow.construct_of[edge->dst()->id()] !=
              control_flow.construct_of[node.id()]) {
        return true;
      }
    }
    return false;
  };
  for (const std::vector<const Node*>& construct : control_flow.constructs) {
    if (!state->IsStaged(*construct.front()) ||
        state->IsDraw(*construct.front())) {
      continue;
    }
    for (const Node* node : construct) {
      if (state->SourcesOf(*node) != state->JoinedSources(*node) &&
          is_result(*node)) {
        state->MoveToStep(*node, {StepReason::kControlFlow, node});
        break;
      }
    }
  }
  return state->SpreadToDependents();
}

// A tensor array lives in the run that creates it, so all its users must be on
// one side. They all have its handle as an input.
bool ResolveTensorArrays(PartitionState* state) {
  // By node id: the op that creates the array whose handle the node yields.
  std::vector<const Node*> creator(state->graph().num_node_ids(), nullptr);
  for (const Node* node : state->order()) {
    if (!state->IsStaged(*node)) continue;
    if (IsTensorArray(*node)) creator[node->id()] = node;
    const Node* array = creator[node->id()];
    if (array == nullptr) continue;
    for (const Edge* edge : node->out_edges()) {
      const Node* user = edge->dst();
      if (edge->IsControlEdge() || !state->IsUser(*user) ||
          node->output_type(edge->src_output()) != DT_RESOURCE) {
        continue;
      }
      if (!state->IsStaged(*user)) {
        state->MoveToStep(*array,
                          {StepReason::kOncePerRecordOnBothSides, array});
      } else if (creator[user->id()] == nullptr) {
        creator[user->id()] = array;
      }
    }
  }
  return state->SpreadToDependents();
}

// Returns whether a node of the step uses `node` or waits for it.
bool FeedsStep(const Node& node, const PartitionState& state) {
  for (const Edge* edge : node.out_edges()) {
    if (state.IsUser(*edge->dst()) && !state.IsStaged(*edge->dst())) {
      return true;
    }
  }
  return false;
}

bool ResolveSharedDraws(PartitionState* state) {
  for (const Node* node : state->order()) {
    if (state->IsDraw(*node) && state->IsStaged(*node) &&
        FeedsStep(*node, *state)) {
      state->MoveToStep(*node, {StepReason::kOncePerRecordOnBothSides, node});
    }
  }
  return state->SpreadToDependents();
}

bool ResolveSharedIterators(PartitionState* state) {
  const Resources& resources = state->resources();
  std::set<const Node*> read_by_step;
  for (const Node* source : state->sources()) {
    if (!state->IsStaged(*source)) {
      read_by_step.insert(resources.IteratorOf(*source));
    }
  }
  for (const Node* source : state->sources()) {
    if (state->IsStaged(*source) &&
        read_by_step.count(resources.IteratorOf(*source)) > 0) {
      state->MoveToStep(*source, {StepReason::kMixedSources, source});
    }
  }
  return state->SpreadToDependents();
}

// Returns whether `source` may advance or begin anew without the sources that
// it is joined with. The Take of a manual stage may, because that stage has its
// own runner. So may an iterator that can be initialised again: that makes the
// staged records stale, although the step would still need the elements of the
// other sources in them.
bool MayAdvanceAlone(const Node& source, const PartitionState& state) {
  if (IsBufferTake(source)) return true;
  const Resources& resources = state.resources();
  const std::vector<ResourceUse>& uses =
      resources.UsesOf(*resources.IteratorOf(source));
  return absl::c_any_of(uses, [](const ResourceUse& use) {
    return IsIteratorInitializer(*use.user);
  });
}

// Groups the sources that staged nodes join, and moves to the step the nodes
// that join sources which the step may advance independently.
class MixedSources {
 public:
  explicit MixedSources(PartitionState* state)
      : state_(*state),
        sources_(state->sources()),
        group_set_(sources_.size(), InternedSets::kEmpty),
        must_split_(sources_.size(), false) {}

  bool Resolve() {
    GroupSources();
    FindGroupsToSplit();
    for (const Node* node : state_.order()) {
      if (!state_.IsStaged(*node) || !must_split_[state_.GroupOf(*node)]) {
        continue;
      }
      const bool joins =
          state_.source_sets().Members(state_.JoinedSources(*node)).size() > 1;
      const bool shares_iterator = state_.role(*node) == NodeRole::kSource &&
                                   of_iterator_[IteratorOf(*node)].size() > 1;
      if (joins || shares_iterator) {
        state_.MoveToStep(*node, {StepReason::kMixedSources, node});
      }
    }
    return state_.SpreadToDependents();
  }

 private:
  // Puts the sources of one iterator into one group, and likewise the sources
  // that one staged node depends on: they advance together.
  void GroupSources() {
    UnionFind groups(sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (state_.IsStaged(*sources_[i])) {
        of_iterator_[IteratorOf(*sources_[i])].push_back(i);
      }
    }
    for (const auto& [iterator, indices] : of_iterator_) {
      groups.JoinAll(indices);
    }
    for (const Node* node : state_.order()) {
      if (!state_.IsStaged(*node)) continue;
      groups.JoinAll(state_.source_sets().Members(state_.JoinedSources(*node)));
    }
    std::vector<int> group_of_source(sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      const int group = group_of_source[i] = groups.Find(i);
      if (!state_.IsStaged(*sources_[i])) continue;
      InternedSets& sets = state_.source_sets();
      group_set_[group] = sets.Union(group_set_[group], sets.Single(i));
    }
    state_.SetGroups(group_of_source);
    group_of_source_ = std::move(group_of_source);
  }

  void FindGroupsToSplit() {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const int group = group_of_source_[i];
      if (state_.IsStaged(*sources_[i]) &&
          MayAdvanceAlone(*sources_[i], state_) &&
          state_.source_sets().Members(group_set_[group]).size() >
              of_iterator_[IteratorOf(*sources_[i])].size()) {
        must_split_[group] = true;
      }
    }
    // A tensor that goes to the step must depend on all sources of its group.
    // Otherwise a step that uses only this tensor would advance sources that it
    // would not advance without the stage.
    std::map<int, bool> aligned;  // By group.
    for (const Node* node : state_.order()) {
      if (!state_.IsStaged(*node) || state_.IsDraw(*node) ||
          !FeedsStep(*node, state_)) {
        continue;
      }
      const int group = state_.GroupOf(*node);
      if (state_.JoinedSources(*node) == group_set_[group]) continue;
      const auto [it, is_new] = aligned.try_emplace(group, false);
      if (is_new) it->second = IsAlignedWithTraining(group);
      if (!it->second) must_split_[group] = true;
    }
  }

  // Whether the group may stay together although the step uses some of its
  // sources separately (AlignedWith::kTraining).
  bool IsAlignedWithTraining(int group) const {
    const std::vector<int>& members =
        state_.source_sets().Members(group_set_[group]);
    std::set<const Node*> iterators;
    for (int i : members) iterators.insert(IteratorOf(*sources_[i]));
    // Without the node that joins them, each iterator still has a region.
    if (iterators.size() == members.size()) return false;
    // How many sources lead to each of the nodes that decide.
    std::map<const Node*, size_t> led_to;
    for (const Node* node : state_.aligned_with()) led_to[node] = 0;
    for (int i : members) {
      for (const Node* node : WithDescendants({sources_[i]})) {
        const auto it = led_to.find(node);
        if (it != led_to.end()) ++it->second;
      }
    }
    const size_t all = members.size();
    return absl::c_any_of(led_to,
                          [=](const auto& led) { return led.second == all; }) &&
           absl::c_all_of(led_to, [=](const auto& led) {
             return led.second == 0 || led.second == all;
           });
  }

  const Node* IteratorOf(const Node& source) const {
    return state_.resources().IteratorOf(source);
  }

  PartitionState& state_;
  const std::vector<const Node*>& sources_;
  // The indices of the staged sources of each iterator.
  std::map<const Node*, std::vector<int>> of_iterator_;
  std::vector<int> group_of_source_;         // By index of the source.
  std::vector<InternedSets::Id> group_set_;  // By group: its staged sources.
  std::vector<bool> must_split_;             // By group.
};

}  // namespace

bool ResolveConflicts(PartitionState* state) {
  return ResolveHandles(state) || ResolveConstructs(state) ||
         ResolveTensorArrays(state) || ResolveSharedDraws(state) ||
         ResolveSharedIterators(state) || MixedSources(state).Resolve();
}

}  // namespace staging
}  // namespace tensorflow
