// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_reads.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/partition/changing_resources.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"
#include "tensorflow_staging/core/graph/partition/other_readers.h"
#include "tensorflow_staging/core/graph/partition/resource_effects.h"
#include "tensorflow_staging/core/graph/partition/resources.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

// Returns `nodes` in the order of the graph.
std::vector<const Node*> Sorted(const NodeSet& nodes) {
  std::vector<const Node*> sorted(nodes.begin(), nodes.end());
  absl::c_sort(sorted, [](const Node* a, const Node* b) {
    return a->id() < b->id();
  });
  return sorted;
}

// Returns the nodes that run in a staged run of `stage`.
NodeSet NodesOf(const PlannedStage& stage) {
  if (!stage.is_manual()) {
    return {stage.region->nodes.begin(), stage.region->nodes.end()};
  }
  std::vector<const Node*> found = stage.puts;
  NodeSet nodes(found.begin(), found.end());
  while (!found.empty()) {
    const Node* node = found.back();
    found.pop_back();
    for (const Edge* edge : node->in_edges()) {
      const Node* input = edge->src();
      if (input->IsOp() && !IsBufferTake(*input) && !IsFedByStages(*edge) &&
          nodes.insert(input).second) {
        found.push_back(input);
      }
    }
  }
  return nodes;
}

class ReadsFinder {
 public:
  explicit ReadsFinder(const Graph& graph)
      : resources_(graph),
        roles_(graph),
        effects_(graph.flib_def()),
        changing_(graph, resources_, /*counts=*/nullptr),
        other_readers_(graph, resources_, /*counts=*/nullptr) {}

  StageReads Find(const PlannedStage& stage) {
    const NodeSet nodes = NodesOf(stage);
    StageReads reads;
    for (const Node* owner : Sorted(OwnersOf(nodes))) {
      if (IsIteratorHandle(*owner)) {
        reads.iterators.push_back({owner, OtherReadersOf(*owner, nodes)});
      } else if (std::vector<const Node*> changers = ChangersOf(*owner, nodes);
                 !changers.empty() && IsRead(*owner, nodes)) {
        reads.changing.push_back({owner, std::move(changers)});
      }
    }
    return reads;
  }

 private:
  // The owners of the resources that `nodes` use.
  NodeSet OwnersOf(const NodeSet& nodes) const {
    NodeSet owners;
    for (const Node* node : nodes) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Node* owner = resources_.OwnerOfInput(*node, i);
        if (owner != nullptr) owners.insert(owner);
      }
      for (const Node* owner : resources_.NamedBy(*node)) owners.insert(owner);
    }
    return owners;
  }

  std::vector<const Node*> OtherReadersOf(const Node& iterator,
                                          const NodeSet& nodes) {
    NodeSet readers;
    for (const ResourceUse& use : resources_.UsesOf(iterator)) {
      if (!nodes.contains(use.user) &&
          (roles_.Find(*use.user).role == NodeRole::kSource ||
           MayReadIterator(*use.user))) {
        readers.insert(use.user);
      }
    }
    const Node* by_string = other_readers_.Find(iterator);
    if (by_string != nullptr && !nodes.contains(by_string)) {
      readers.insert(by_string);
    }
    return Sorted(readers);
  }

  std::vector<const Node*> ChangersOf(const Node& owner, const NodeSet& nodes) {
    NodeSet changers;
    for (const Node* changer : changing_.ChangersOf(owner)) {
      if (!nodes.contains(changer)) changers.insert(changer);
    }
    return Sorted(changers);
  }

  // Whether `nodes` read the value of a resource, and only read it.
  bool IsRead(const Node& owner, const NodeSet& nodes) {
    bool is_read = false;
    for (const ResourceUse& use : resources_.UsesOf(owner)) {
      if (!nodes.contains(use.user)) continue;
      const ResourceEffect effect = effects_.Find(use);
      if (effect > ResourceEffect::kRead) return false;
      is_read |= effect == ResourceEffect::kRead;
    }
    return is_read;
  }

  const Resources resources_;
  NodeRoles roles_;
  ResourceEffects effects_;
  ChangingResources changing_;
  const OtherReaders other_readers_;
};

}  // namespace

std::vector<StageReads> FindStageReads(const Graph& graph,
                                       const StagePlan& plan) {
  std::vector<StageReads> reads;
  if (plan.stages().empty()) return reads;
  ReadsFinder finder(graph);
  for (const PlannedStage& stage : plan.stages()) {
    reads.push_back(finder.Find(stage));
  }
  return reads;
}

}  // namespace staging
}  // namespace tensorflow
