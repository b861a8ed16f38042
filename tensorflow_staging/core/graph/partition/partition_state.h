// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/interned_sets.h"
#include "tensorflow_staging/core/graph/partition/located_reason.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {

// What is known of each node of a graph while its partition is computed.
//
// A node is in the step, or it is a candidate; a candidate is staged if it lies
// between a source and the step. Nodes only ever move from the candidates to
// the step, together with all that depends on them.
class PartitionState {
 public:
  // `graph` has to outlive this object. Nodes that `filter` rejects do not
  // count; all count where it is null.
  PartitionState(const Graph& graph, const NodeFilter& filter);

  PartitionState(const PartitionState&) = delete;
  PartitionState& operator=(const PartitionState&) = delete;

  const Graph& graph() const { return graph_; }

  // Whether `node` is looked at. The graph's own source and sink are not.
  bool Counts(const Node& node) const { return counts_[node.id()]; }

  NodeRole role(const Node& node) const { return roles_[node.id()]; }
  // In the order of the graph.
  const std::vector<const Node*>& sources() const { return sources_; }
  // A source gets the next index, which the sets of sources are made of.
  void SetRole(const Node& node, NodeRole role);

  // Whether `node` is in the step, and why each node is not staged.
  bool InStep(const Node& node) const {
    return reasons_[node.id()].reason != StepReason::kNone;
  }
  void SetReason(const Node& node, const LocatedReason& reason) {
    reasons_[node.id()] = reason;
  }
  std::vector<LocatedReason> TakeReasons() { return std::move(reasons_); }

  // Moves `node` to the step unless it is there already. SpreadToDependents has
  // to follow before anything else is asked.
  void MoveToStep(const Node& node, const LocatedReason& reason);

  // Moves to the step all that depends on moved nodes, each with the reason of
  // the nearest of them. Also moves the draws that moved nodes depend on, so
  // that a chain of draws takes one round. Returns whether any node had moved.
  bool SpreadToDependents();

  // Sorts the candidates topologically. Cycles contain control flow nodes,
  // which are in the step. To be called once, when the step is first known.
  void OrderCandidates();
  // The nodes that were candidates then, each after its inputs.
  const std::vector<const Node*>& order() const { return order_; }

  // Computes, for all candidates, what the functions below return.
  void AnalyzeCandidates();

  // Whether `node` lies between a source and the step.
  bool IsStaged(const Node& node) const;

  bool DependsOnSource(const Node& node) const {
    return source_set_[node.id()] != InternedSets::kEmpty;
  }

  // Whether `node` has to run once for each record though it depends on no
  // source.
  bool IsDraw(const Node& node) const {
    return once_per_record_[node.id()] && !DependsOnSource(node);
  }

  // The sources that a staged node depends on; of a draw, those of all that it
  // is staged for. They have to advance together.
  InternedSets::Id JoinedSources(const Node& node) const {
    return IsDraw(node) ? leads_to_set_[node.id()] : source_set_[node.id()];
  }
  InternedSets& source_sets() { return source_sets_; }
  const InternedSets& source_sets() const { return source_sets_; }

  // The group of sources to which a staged node belongs. By index of a source;
  // groups are told apart by numbers.
  void SetGroups(std::vector<int> group_of_source) {
    group_of_source_ = std::move(group_of_source);
  }
  int GroupOf(const Node& node) const {
    return group_of_source_[source_sets_.Members(JoinedSources(node)).front()];
  }

 private:
  const Graph& graph_;
  // The vectors are by node id unless said otherwise.
  std::vector<bool> counts_;
  std::vector<NodeRole> roles_;
  std::vector<LocatedReason> reasons_;
  std::vector<const Node*> sources_;  // By index of the source.
  std::map<const Node*, int> source_index_;
  // Nodes new to the step, for SpreadToDependents.
  std::deque<const Node*> moved_;
  std::vector<const Node*> order_;

  // Of candidates:
  InternedSets source_sets_;
  std::vector<InternedSets::Id> source_set_;
  // Whether the node, or what it depends on, is NodeRole::kOncePerRecord.
  std::vector<bool> once_per_record_;
  // Whether a node of the step depends on the node.
  std::vector<bool> needed_;
  // Of draws: the sources of all that the draw is staged for.
  std::vector<InternedSets::Id> leads_to_set_;

  std::vector<int> group_of_source_;  // By index of the source.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_
