// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/regions.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tensorflow/core/platform/strcat.h"

namespace tensorflow {
namespace staging {
namespace {

bool ByName(const Node* a, const Node* b) { return a->name() < b->name(); }

// Adds to the boundary the outputs of `node` that the step uses, and `node` to
// the control boundary if the step waits for it.
void AddBoundary(const PartitionState& state, const Node& node,
                 StagedRegion* region) {
  std::vector<bool> carried(node.num_outputs(), false);
  bool has_control_dependent = false;
  for (const Edge* edge : node.out_edges()) {
    if (!state.Counts(*edge->dst()) || state.IsStaged(*edge->dst())) continue;
    if (edge->IsControlEdge()) {
      has_control_dependent = true;
    } else {
      carried[edge->src_output()] = true;
    }
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (carried[i]) region->boundary.push_back({&node, i});
  }
  if (has_control_dependent) region->control_boundary.push_back(&node);
}

// Carries unused source outputs, so that they can be fetched. Each costs only a
// reference. A join does not carry them, because such an output would depend on
// only one of its sources.
void AddUnusedSourceOutputs(const PartitionState& state, StagedRegion* region) {
  if (region->sources.size() > 1) return;
  const Node* source = region->sources.front();
  std::vector<bool> used(source->num_outputs(), false);
  for (const Edge* edge : source->out_edges()) {
    if (!edge->IsControlEdge() && state.Counts(*edge->dst())) {
      used[edge->src_output()] = true;
    }
  }
  for (int i = 0; i < source->num_outputs(); ++i) {
    if (!used[i]) region->boundary.push_back({source, i});
  }
}

void Sort(StagedRegion* region) {
  std::sort(region->sources.begin(), region->sources.end(), ByName);
  std::sort(region->boundary.begin(), region->boundary.end(),
            [](const StagedTensor& a, const StagedTensor& b) {
              return std::tie(a.node->name(), a.index) <
                     std::tie(b.node->name(), b.index);
            });
  std::sort(region->control_boundary.begin(), region->control_boundary.end(),
            ByName);
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

std::vector<StagedRegion> CollectRegions(PartitionState* state) {
  std::map<int, StagedRegion> by_group;
  for (const Node* node : state->order()) {
    if (!state->IsStaged(*node)) continue;
    StagedRegion& region = by_group[state->GroupOf(*node)];
    region.nodes.push_back(node);
    if (state->role(*node) == NodeRole::kSource) {
      region.sources.push_back(node);
    }
    AddBoundary(*state, *node, &region);
  }
  std::vector<StagedRegion> regions;
  for (auto& [group, region] : by_group) {
    if (region.boundary.empty()) {
      for (const Node* node : region.nodes) {
        state->SetReason(*node, {StepReason::kNothingToCarry, node});
      }
      continue;
    }
    AddUnusedSourceOutputs(*state, &region);
    Sort(&region);
    regions.push_back(std::move(region));
  }
  std::sort(regions.begin(), regions.end(),
            [](const StagedRegion& a, const StagedRegion& b) {
              return ByName(a.sources.front(), b.sources.front());
            });
  ExplainUnstagedNodes(state);
  return regions;
}

}  // namespace staging
}  // namespace tensorflow
