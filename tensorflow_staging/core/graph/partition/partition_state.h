// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/control_flow.h"
#include "tensorflow_staging/core/graph/facts/interned_sets.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/resources.h"
#include "tensorflow_staging/core/graph/partition/located_reason.h"

namespace tensorflow {
namespace staging {

// The state of each node of a graph while StagePartition divides the graph.
//
// Each node is either in the step or a candidate. A candidate is staged if it
// lies between a source and the step. A node may move from the candidates to
// the step, together with all nodes that depend on it, but never back.
//
// The nodes of a construct (control_flow.h) move together and are staged
// together.
class PartitionState {
 public:
  // `graph` must outlive this object. Nodes that `filter` rejects do not count.
  // If `filter` is null, all nodes count.
  PartitionState(const Graph& graph, const NodeFilter& filter);

  PartitionState(const PartitionState&) = delete;
  PartitionState& operator=(const PartitionState&) = delete;

  const Graph& graph() const { return graph_; }

  // The resources of the nodes that count.
  const Resources& resources() const { return resources_; }

  // Whether the partition considers `node`. It does not consider the graph's
  // own source and sink nodes.
  bool Counts(const Node& node) const { return counts_[node.id()]; }

  const ControlFlow& control_flow() const { return control_flow_; }
  // Returns the nodes of the construct of `node`, or only `node` if it belongs
  // to none.
  absl::Span<const Node* const> SameSide(const Node& node) const;

  NodeRole role(const Node& node) const { return roles_[node.id()]; }
  // The sources, in the order of the graph.
  const std::vector<const Node*>& sources() const { return sources_; }
  // Sets the role of `node`. A source also gets the next index; the sets of
  // sources consist of these indices.
  void SetRole(const Node& node, NodeRole role);

  // Whether `node` is in the step.
  bool InStep(const Node& node) const {
    return reasons_[node.id()].reason != StepReason::kNone;
  }
  // Sets the reason why `node` is not staged. Unlike MoveToStep, has no effect
  // on the nodes that depend on it.
  void SetReason(const Node& node, const LocatedReason& reason) {
    reasons_[node.id()] = reason;
  }
  // Moves out the reasons why nodes are not staged, by node id.
  std::vector<LocatedReason> TakeReasons() { return std::move(reasons_); }

  // Moves `node` to the step unless it is already there. The nodes that depend
  // on it, and the others of its construct, follow at the next call of
  // SpreadToDependents.
  void MoveToStep(const Node& node, const LocatedReason& reason);

  // Moves to the step all nodes that depend on moved nodes or belong to their
  // constructs, each with the reason of the nearest one. Also moves the draws
  // that moved nodes depend on, so that a chain of draws needs only one round.
  // Returns whether any node has moved since the last call.
  bool SpreadToDependents();

  // Says which nodes training needs, and which of them lead to an update, by
  // node id; see FindTrainingNodes.
  void SetTrainingNodes(std::vector<bool> needed,
                        std::vector<bool> lead_to_update) {
    training_ = std::move(needed);
    lead_to_update_ = std::move(lead_to_update);
  }

  // Says which nodes decide whether the sources of an iterator advance together;
  // none if each run of the step does.
  void AlignWith(std::vector<const Node*> nodes) {
    aligned_with_ = std::move(nodes);
  }
  const std::vector<const Node*>& aligned_with() const { return aligned_with_; }

  // Sorts the candidates topologically, without regard to the back edges of
  // loops. Other cycles are in the step. Call this once, after FindStepNodes.
  void OrderCandidates();
  // The nodes that were candidates during OrderCandidates, each after its
  // inputs, except for back edges. Some of them may have moved to the step
  // since.
  const std::vector<const Node*>& order() const { return order_; }

  // Computes the results of the functions below for all candidates.
  void AnalyzeCandidates();

  // Whether a run may use the inputs of `node`. This is so for all nodes that
  // count, except those of a construct without a result that nothing needs,
  // such as an unused pivot.
  bool IsUser(const Node& node) const;

  // Whether `node` lies between a source and the part of the step for which
  // records run ahead: what training needs or, if none of the sources of the
  // node's construct leads to an update, any node of the step.
  bool IsStaged(const Node& node) const;

  // Whether a record carries what `user`, which is not staged, uses of the
  // staged node `input`. Besides what training needs, that is what the step
  // computes from records and variables if a run asks for it, such as a loss or
  // predictions: programs that ask for them in each step would compute again
  // what the region has just computed. Few steps ask for a summary.
  bool IsCarriedTo(const Node& user, const Node& input) const {
    return training_[user.id()] ||
           (InStep(user) &&
            (reasons_[user.id()].reason != StepReason::kSummary ||
             !joined_training_source_[First(input)]));
  }

  // Whether `node`, or another node of its construct, depends on a source.
  bool DependsOnSource(const Node& node) const {
    return joined_set_[First(node)] != InternedSets::kEmpty;
  }

  // Whether `node` is a draw: it, or another node of its construct, must run
  // once for each record although the construct depends on no source.
  bool IsDraw(const Node& node) const {
    return once_per_record_[First(node)] && !DependsOnSource(node);
  }

  // The sources on which `node` itself depends.
  InternedSets::Id SourcesOf(const Node& node) const {
    return source_set_[node.id()];
  }

  // The sources that must advance together for a staged node: those that its
  // construct depends on or, for a draw, the sources of the nodes that it is
  // staged for.
  InternedSets::Id JoinedSources(const Node& node) const {
    return IsDraw(node) ? leads_to_set_[First(node)] : joined_set_[First(node)];
  }
  InternedSets& source_sets() { return source_sets_; }
  const InternedSets& source_sets() const { return source_sets_; }

  // Sets the number of the group to which each source belongs, by index of the
  // source.
  void SetGroups(std::vector<int> group_of_source) {
    group_of_source_ = std::move(group_of_source);
  }
  // Returns the number of the group of sources to which a staged node belongs.
  int GroupOf(const Node& node) const {
    return group_of_source_[source_sets_.Members(JoinedSources(node)).front()];
  }

 private:
  // The node id by which values that the nodes of a construct have in common
  // are stored.
  int First(const Node& node) const { return SameSide(node).front()->id(); }

  bool IsCandidate(const Node& node) const {
    return Counts(node) && !InStep(node);
  }

  // Whether records may run ahead for the construct of `node`.
  bool MayBeNeeded(const Node& node) const {
    return training_[node.id()] || !joined_training_source_[First(node)];
  }

  void FindSources();
  // Adds the sources of the candidate `node` to those of the candidate `next`,
  // which depends on it. Returns whether that changes anything.
  bool AddSources(const Node& node, const Node& next);
  void JoinSources();
  void FindNeeded();
  void FindWhatDrawsLeadTo();

  const Graph& graph_;
  const Resources resources_;
  // The vectors are indexed by node id unless noted otherwise.
  std::vector<bool> counts_;
  std::vector<const Node*> nodes_;
  ControlFlow control_flow_;
  std::vector<NodeRole> roles_;
  std::vector<LocatedReason> reasons_;
  std::vector<const Node*> sources_;  // By index of the source.
  std::map<const Node*, int> source_index_;
  // Nodes that have moved to the step since the last SpreadToDependents.
  std::deque<const Node*> moved_;
  std::vector<bool> moved_constructs_;  // By number of the construct.
  std::vector<const Node*> order_;
  std::vector<bool> training_;
  std::vector<bool> lead_to_update_;
  std::vector<const Node*> aligned_with_;

  // The results of AnalyzeCandidates, for candidates.
  InternedSets source_sets_;
  // The sources that the node depends on.
  std::vector<InternedSets::Id> source_set_;
  // Whether one of these sources leads to an update.
  std::vector<bool> training_source_;
  // Whether the node, or a node that it depends on, has the role
  // kOncePerRecord.
  std::vector<bool> runs_once_;

  // More results, by First().
  // The sources that a node of the construct depends on.
  std::vector<InternedSets::Id> joined_set_;
  // Whether one of these sources leads to an update.
  std::vector<bool> joined_training_source_;
  // Whether runs_once_ is set for a node of the construct.
  std::vector<bool> once_per_record_;
  // Whether the part of the step for which records run ahead depends on the
  // construct.
  std::vector<bool> needed_;
  // For draws: the sources of the nodes that the draw is staged for.
  std::vector<InternedSets::Id> leads_to_set_;

  std::vector<int> group_of_source_;  // By index of the source.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_PARTITION_STATE_H_
