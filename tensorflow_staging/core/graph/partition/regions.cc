// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/regions.h"

#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

bool ByName(const Node* a, const Node* b) { return a->name() < b->name(); }

// Decides what the records of one region carry.
class Record {
 public:
  Record(const PartitionState& state, NodeRoles* roles, const StaleReads* stale,
         StagedRegion* region)
      : state_(state), roles_(*roles), stale_(stale), region_(*region) {
    for (const Node* node : region_.nodes) staged_.insert(node);
  }

  void Choose(RecordContent content) {
    for (const Node* node : region_.nodes) CarryWhatTheStepNeeds(*node);
    if (stale_ != nullptr) CarryLookups();
    if (content == RecordContent::kElements) {
      for (const Node* source : region_.sources) CarryElements(*source);
      CarryWhatCannotBeComputedAgain();
    } else {
      for (const Node* node : region_.nodes) CarryForAnyUse(*node);
      CarryUnusedOutputsOfLoneSource();
    }
  }

 private:
  using Tensor = std::pair<const Node*, int>;

  void Carry(const Node& node, int output, bool only_if_asked = false) {
    if (carried_.insert({&node, output}).second) {
      region_.boundary.push_back({&node, output, only_if_asked});
    }
  }

  void CarryElements(const Node& source) {
    for (int i = 0; i < source.num_outputs(); ++i) {
      Carry(source, i, /*only_if_asked=*/true);
    }
  }

  void CarryLookups() {
    for (const Node* node : region_.nodes) {
      if (!stale_->IsLookup(*node)) continue;
      for (int i = 0; i < node->num_outputs(); ++i) {
        Carry(*node, i, /*only_if_asked=*/true);
      }
    }
  }

  // Carries, for a stand-in of the stage before, the elements of that stage's
  // Take that it passes on. The step has a stand-in of its own for them.
  void CarryWhatIsPassedOn(const Node& stand_in, bool only_if_asked) {
    for (const Edge* edge : stand_in.in_edges()) {
      if (!edge->IsControlEdge()) {
        const TakenTensor taken = TakenTensorOf(*edge);
        Carry(*taken.node, taken.output, only_if_asked);
      }
    }
  }

  bool IsUseOutside(const Edge& edge) const {
    return state_.IsUser(*edge.dst()) && !staged_.contains(edge.dst());
  }

  void CarryWhatTheStepNeeds(const Node& node) {
    bool has_control_dependent = false;
    for (const Edge* edge : node.out_edges()) {
      if (!IsUseOutside(*edge)) continue;
      if (edge->IsControlEdge()) {
        has_control_dependent = true;
      } else if (state_.IsCarriedTo(*edge->dst(), node)) {
        if (IsStandIn(node)) {
          CarryWhatIsPassedOn(node, /*only_if_asked=*/false);
        } else {
          Carry(node, edge->src_output());
        }
      }
    }
    if (has_control_dependent) region_.control_boundary.push_back(&node);
  }

  void CarryForAnyUse(const Node& node) {
    for (const Edge* edge : node.out_edges()) {
      if (!edge->IsControlEdge() && IsUseOutside(*edge)) {
        Carry(node, edge->src_output());
      }
    }
  }

  // Whether the value of the edge's end depends on its beginning. By a control
  // edge, only the nodes of a construct do: they may be dead.
  bool IsDependence(const Edge& edge) const {
    const std::vector<int>& construct_of = state_.control_flow().construct_of;
    const int construct = construct_of[edge.src()->id()];
    return !edge.IsControlEdge() ||
           (construct != ControlFlow::kNoConstruct &&
            construct == construct_of[edge.dst()->id()]);
  }

  // Carries the tensors that the step uses only if a run asks for it, and that
  // it could not compute from the rest of the record.
  void CarryWhatCannotBeComputedAgain() {
    absl::flat_hash_set<const Node*> lost;
    std::vector<const Node*> to_visit;
    for (const Node* node : region_.nodes) {
      if (!roles_.IsRepeatable(*node) && lost.insert(node).second) {
        to_visit.push_back(node);
      }
    }
    while (!to_visit.empty()) {
      const Node* node = to_visit.back();
      to_visit.pop_back();
      CarryForAnyUse(*node);
      for (const Edge* edge : node->out_edges()) {
        if (!staged_.contains(edge->dst()) || !IsDependence(*edge) ||
            carried_.contains({node, edge->src_output()})) {
          continue;
        }
        if (lost.insert(edge->dst()).second) to_visit.push_back(edge->dst());
      }
    }
  }

  // Carries what nothing uses, so that it can be fetched. A join does not carry
  // it, because such an output would depend on only one of its sources.
  void CarryUnusedOutputsOfLoneSource() {
    if (region_.sources.size() > 1) return;
    const Node* source = region_.sources.front();
    std::vector<bool> used(source->num_outputs(), false);
    for (const Edge* edge : source->out_edges()) {
      if (!edge->IsControlEdge() && state_.IsUser(*edge->dst())) {
        used[edge->src_output()] = true;
      }
    }
    for (int i = 0; i < source->num_outputs(); ++i) {
      if (!used[i]) Carry(*source, i, /*only_if_asked=*/true);
    }
  }

  const PartitionState& state_;
  NodeRoles& roles_;
  const StaleReads* const stale_;
  StagedRegion& region_;
  absl::flat_hash_set<const Node*> staged_;
  absl::flat_hash_set<Tensor> carried_;
};

// Whether a node of the step uses a tensor of the region. If the step only
// waits for the region, it takes no records.
bool YieldsTensor(const PartitionState& state, const StagedRegion& region) {
  for (const Node* node : region.nodes) {
    for (const Edge* edge : node->out_edges()) {
      if (!edge->IsControlEdge() && state.IsUser(*edge->dst()) &&
          !state.IsStaged(*edge->dst())) {
        return true;
      }
    }
  }
  return false;
}

// Returns why a region is no stage, or kNone. With `stale`, only the regions of
// lookups are stages.
StepReason WhyNoRegion(const PartitionState& state, const StaleReads* stale,
                       const StagedRegion& region) {
  if (!YieldsTensor(state, region)) return StepReason::kNothingToCarry;
  if (stale != nullptr && !absl::c_any_of(region.nodes, [&](const Node* node) {
        return stale->IsLookup(*node) || IsMarkedEmbedding(*node);
      })) {
    return StepReason::kNoLookup;
  }
  return StepReason::kNone;
}

void Sort(StagedRegion* region) {
  absl::c_sort(region->sources, ByName);
  absl::c_sort(region->boundary,
               [](const StagedTensor& a, const StagedTensor& b) {
                 return std::tie(a.node->name(), a.index) <
                        std::tie(b.node->name(), b.index);
               });
  absl::c_sort(region->control_boundary, ByName);
}

// Gives a reason to the candidates that are not staged.
void ExplainUnstagedNodes(PartitionState* state) {
  for (const Node* node : state->order()) {
    if (state->InStep(*node) || state->IsStaged(*node)) continue;
    state->SetReason(*node,
                     {state->DependsOnSource(*node) ? StepReason::kUnneeded
                                                    : StepReason::kNoSource,
                      nullptr});
  }
}

}  // namespace

std::string StagedTensor::name() const {
  return strings::StrCat(node->name(), ":", index);
}

std::vector<StagedRegion> CollectRegions(RecordContent content,
                                         const StaleReads* stale,
                                         PartitionState* state) {
  std::map<int, StagedRegion> by_group;
  for (const Node* node : state->order()) {
    if (!state->IsStaged(*node)) continue;
    StagedRegion& region = by_group[state->GroupOf(*node)];
    region.nodes.push_back(node);
    if (state->role(*node) == NodeRole::kSource) {
      region.sources.push_back(node);
    }
  }
  NodeRoles roles(state->graph());
  std::vector<StagedRegion> regions;
  for (auto& [group, region] : by_group) {
    const StepReason why_not = WhyNoRegion(*state, stale, region);
    if (why_not != StepReason::kNone) {
      for (const Node* node : region.nodes) {
        state->SetReason(*node, {why_not, node});
      }
      continue;
    }
    Record(*state, &roles, stale, &region).Choose(content);
    Sort(&region);
    regions.push_back(std::move(region));
  }
  absl::c_sort(regions, [](const StagedRegion& a, const StagedRegion& b) {
    return ByName(a.sources.front(), b.sources.front());
  });
  ExplainUnstagedNodes(state);
  return regions;
}

}  // namespace staging
}  // namespace tensorflow
