// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_reads.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/graph/facts/changing_resources.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/other_iterator_readers.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

class ReadsFinder {
 public:
  explicit ReadsFinder(const Graph& graph)
      : resources_(graph),
        effects_(graph.flib_def()),
        changing_(graph, resources_, NodeFilter()),
        other_readers_(graph, resources_, NodeFilter()) {}

  StageReads Find(const PlannedStage& stage) {
    const std::vector<const Node*> in_order = stage.Nodes();
    const NodeSet nodes(in_order.begin(), in_order.end());
    StageReads reads;
    for (const Node* owner : InGraphOrder(OwnersOf(nodes))) {
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
          (IsSourceOp(*use.user) || MayReadIterator(*use.user))) {
        readers.insert(use.user);
      }
    }
    const Node* by_string = other_readers_.Find(iterator);
    if (by_string != nullptr && !nodes.contains(by_string)) {
      readers.insert(by_string);
    }
    return InGraphOrder(readers);
  }

  std::vector<const Node*> ChangersOf(const Node& owner, const NodeSet& nodes) {
    NodeSet changers;
    for (const Node* changer : changing_.ChangersOf(owner)) {
      if (!nodes.contains(changer)) changers.insert(changer);
    }
    return InGraphOrder(changers);
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
  ResourceEffects effects_;
  ChangingResources changing_;
  const OtherIteratorReaders other_readers_;
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
