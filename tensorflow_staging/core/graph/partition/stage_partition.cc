// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/stage_partition.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/interned_sets.h"

namespace tensorflow {
namespace staging {
namespace {

// Disjoint groups of the numbers from 0 to size - 1.
class Groups {
 public:
  explicit Groups(int size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

  void JoinAll(const std::vector<int>& members) {
    for (int member : members) Join(members.front(), member);
  }

 private:
  std::vector<int> parent_;
};

bool ByName(const Node* a, const Node* b) { return a->name() < b->name(); }

// Computes a StagePartition. All vectors by node id unless said otherwise.
class Partitioner {
 public:
  Partitioner(const Graph& graph, const NodeFilter& counts,
              std::vector<StepCause>* causes)
      : graph_(graph), filter_(counts), causes_(*causes) {
    const int size = graph.num_node_ids();
    causes_.assign(size, StepCause());
    counts_.assign(size, false);
    for (const Node* node : graph.op_nodes()) {
      counts_[node->id()] = counts == nullptr || counts(*node);
      if (!counts_[node->id()]) {
        causes_[node->id()] = {StepReason::kAddedLater, node};
      }
    }
    roles_.assign(size, NodeRole::kPure);
    once_per_record_.assign(size, false);
    source_set_.assign(size, InternedSets::kEmpty);
    needed_.assign(size, false);
    leads_to_set_.assign(size, InternedSets::kEmpty);
  }

  std::vector<StagedRegion> Run() {
    FindRoles();
    LeaveOutWhatIsStagedByHand();
    LeaveOutSavedIterators();
    LeaveOutIteratorsReadElsewhere();
    Spread();
    OrderCandidates();
    // Each round moves at least one node to the step, and only those that the
    // first round finds in conflict can bring about another one: two or three
    // in practice.
    do {
      FindWhatCouldRunAhead();
    } while (ResolveHandles() || ResolveSharedDraws() ||
             ResolveSharedIterators() || ResolveMixedSources());
    return MakeRegions();
  }

 private:
  bool Counts(const Node& node) const { return counts_[node.id()]; }

  bool InStep(const Node& node) const {
    return causes_[node.id()].reason != StepReason::kNone;
  }

  // Whether `node` lies between a source and the step, as far as it is known.
  bool Staged(const Node& node) const {
    return Counts(node) && !InStep(node) && needed_[node.id()] &&
           (source_set_[node.id()] != InternedSets::kEmpty ||
            leads_to_set_[node.id()] != InternedSets::kEmpty);
  }

  // Whether `node` has to run once for each record though it depends on no
  // source.
  bool IsDraw(const Node& node) const {
    return once_per_record_[node.id()] &&
           source_set_[node.id()] == InternedSets::kEmpty;
  }

  // Moves `node` to the step, and soon, by Spread, all that depends on it.
  void MoveToStep(const Node& node, StepCause cause) {
    if (InStep(node)) return;
    causes_[node.id()] = cause;
    moved_.push_back(&node);
  }

  // Breadth first, so that the cause of a node is the nearest one. Moves draws
  // for what is moved as well, so that a chain of them takes one round.
  void Spread() {
    while (!moved_.empty()) {
      const Node* node = moved_.front();
      moved_.pop_front();
      for (const Edge* edge : node->in_edges()) {
        const Node* input = edge->src();
        if (IsDraw(*input) && Staged(*input)) {
          MoveToStep(*input, {StepReason::kOncePerRecordOnBothSides, input});
        }
      }
      for (const Edge* edge : node->out_edges()) {
        if (Counts(*edge->dst())) {
          MoveToStep(*edge->dst(), causes_[node->id()]);
        }
      }
    }
  }

  // Spreads what has been moved to the step; returns whether there was any.
  bool SpreadAny() {
    const bool any = !moved_.empty();
    Spread();
    return any;
  }

  void FindRoles() {
    NodeRoles roles(graph_, filter_);
    std::vector<const Node*> with_side_effect;
    for (const Node* node : graph_.op_nodes()) {
      if (!Counts(*node)) continue;
      const RoleAndReason found = roles.Find(*node);
      roles_[node->id()] = found.role;
      if (found.reason == StepReason::kSideEffect) {
        with_side_effect.push_back(node);
      } else if (found.role == NodeRole::kStepOnly) {
        MoveToStep(*node, {found.reason, node});
      } else if (found.role == NodeRole::kSource) {
        source_index_.emplace(node, sources_.size());
        sources_.push_back(node);
      }
    }
    // A marked source yields its records all the same; the mark says that what
    // is made of them belongs to the step.
    for (const Node* source : sources_) {
      bool marked = false;
      if (!TryGetNodeAttr(source->attrs(), kTargetAttr, &marked) || !marked) {
        continue;
      }
      for (const Edge* edge : source->out_edges()) {
        if (Counts(*edge->dst())) {
          MoveToStep(*edge->dst(), {StepReason::kTarget, source});
        }
      }
    }
    // What reads or writes a variable has a side effect, too; the variable
    // tells more.
    Spread();
    for (const Node* node : with_side_effect) {
      MoveToStep(*node, {StepReason::kSideEffect, node});
    }
  }

  // What leads to a Put is a stage already.
  void LeaveOutWhatIsStagedByHand() {
    std::vector<bool> seen(graph_.num_node_ids(), false);
    std::vector<std::pair<const Node*, const Node*>>
        ahead;  // Node and its Put.
    for (const Node* node : graph_.op_nodes()) {
      if (Counts(*node) && IsBufferPut(*node)) ahead.emplace_back(node, node);
    }
    while (!ahead.empty()) {
      const auto [node, put] = ahead.back();
      ahead.pop_back();
      for (const Edge* edge : node->in_edges()) {
        const Node* input = edge->src();
        if (!Counts(*input) || seen[input->id()]) continue;
        seen[input->id()] = true;
        ahead.emplace_back(input, put);
        const NodeRole role = roles_[input->id()];
        if (role == NodeRole::kSource || role == NodeRole::kOncePerRecord) {
          MoveToStep(*input, {StepReason::kStagedByHand, put});
        }
      }
    }
  }

  // An iterator whose position is saved with the checkpoint must not be ahead
  // of the step: the records in between would be missing after a restore.
  void LeaveOutSavedIterators() {
    for (const Node* source : sources_) {
      for (const Edge* edge : IteratorOf(*source)->out_edges()) {
        if (Counts(*edge->dst()) &&
            edge->dst()->type_string() == "SerializeIterator") {
          MoveToStep(*source, {StepReason::kSavedIterator, edge->dst()});
        }
      }
    }
  }

  // An iterator that something of the step reads in another way than by a
  // source of this graph: a function, a branch or a loop that is given its
  // handle, a dataset. The records that run ahead would be missing there.
  void LeaveOutIteratorsReadElsewhere() {
    // By the types of the records, as an iterator's handle has them.
    std::map<std::vector<DataType>, std::vector<const Node*>> of_string;
    for (const Node* node : graph_.op_nodes()) {
      std::vector<DataType> types;
      if (Counts(*node) && IsIteratorFromStringHandle(*node) &&
          TryGetNodeAttr(node->attrs(), "output_types", &types)) {
        of_string[types].push_back(node);
      }
    }
    std::map<const Node*, const Node*> reader_of;
    for (const Node* source : sources_) {
      if (IsBufferTake(*source)) continue;
      const Node* handle = IteratorOf(*source);
      const auto [it, inserted] = reader_of.emplace(handle, nullptr);
      if (inserted) it->second = OtherReaderOf(*handle, of_string);
      if (it->second != nullptr) {
        MoveToStep(*source, {StepReason::kSharedIterator, it->second});
      }
    }
  }

  // What may read an iterator though it is no source, or null. `of_string` has
  // the handles that are made of strings.
  const Node* OtherReaderOf(
      const Node& handle,
      const std::map<std::vector<DataType>, std::vector<const Node*>>&
          of_string) {
    for (const Edge* edge : handle.out_edges()) {
      if (edge->IsControlEdge() || !Counts(*edge->dst())) continue;
      if (MayReadIterator(*edge->dst())) return edge->dst();
      // That a handle has a string is nothing: each tf.data.Iterator makes one.
      // Another handle that is made of a string may be given this one.
      std::vector<DataType> types;
      if (!IsIteratorToStringHandle(*edge->dst()) ||
          !TryGetNodeAttr(handle.attrs(), "output_types", &types)) {
        continue;
      }
      const auto it = of_string.find(types);
      if (it == of_string.end()) continue;
      for (const Node* other : it->second) {
        if (other != &handle) return other;
      }
    }
    return nullptr;
  }

  // Sorts what is not in the step topologically. Cycles have control flow
  // nodes, which are.
  void OrderCandidates() {
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

  void FindWhatCouldRunAhead() {
    for (const Node* node : order_) {
      if (InStep(*node)) continue;
      const int id = node->id();
      InternedSets::Id set = InternedSets::kEmpty;
      bool once = roles_[id] == NodeRole::kOncePerRecord;
      if (roles_[id] == NodeRole::kSource) {
        set = source_sets_.Single(source_index_.at(node));
      }
      for (const Edge* edge : node->in_edges()) {
        if (!Counts(*edge->src())) continue;
        set = source_sets_.Union(set, source_set_[edge->src()->id()]);
        once = once || once_per_record_[edge->src()->id()];
      }
      source_set_[id] = set;
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
        if (IsDraw(*node) && Staged(*next)) {
          leads_to = source_sets_.Union(
              leads_to, IsDraw(*next) ? leads_to_set_[next->id()]
                                      : source_set_[next->id()]);
        }
      }
      needed_[node->id()] = needed;
      leads_to_set_[node->id()] = leads_to;
    }
  }

  // Moves to the step handles that wait for a record: the clone of one would be
  // another resource. Returns whether there was any.
  bool ResolveHandles() {
    for (const Node* node : order_) {
      if (roles_[node->id()] == NodeRole::kHandle && Staged(*node)) {
        MoveToStep(*node, {StepReason::kSideEffect, node});
      }
    }
    return SpreadAny();
  }

  // Moves to the step what draws for both sides: two draws where there was one
  // would give each side another value. Returns whether there was any.
  bool ResolveSharedDraws() {
    for (const Node* node : order_) {
      if (!IsDraw(*node) || !Staged(*node)) continue;
      for (const Edge* edge : node->out_edges()) {
        if (Counts(*edge->dst()) && !Staged(*edge->dst())) {
          MoveToStep(*node, {StepReason::kOncePerRecordOnBothSides, node});
        }
      }
    }
    return SpreadAny();
  }

  // Moves to the step the sources of iterators that the step reads as well: it
  // would miss the records that run ahead. Returns whether there was any.
  bool ResolveSharedIterators() {
    std::set<const Node*> read_by_step;
    for (const Node* source : sources_) {
      if (!Staged(*source)) read_by_step.insert(IteratorOf(*source));
    }
    for (const Node* source : sources_) {
      if (Staged(*source) && read_by_step.count(IteratorOf(*source)) > 0) {
        MoveToStep(*source, {StepReason::kMixedSources, source});
      }
    }
    return SpreadAny();
  }

  // Sources that one staged node depends on advance together. Moves to the step
  // what forces together sources that the step may also use apart. Returns
  // whether there was any.
  bool ResolveMixedSources() {
    Groups groups(sources_.size());
    std::map<const Node*, std::vector<int>> of_handle;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (Staged(*sources_[i]))
        of_handle[IteratorOf(*sources_[i])].push_back(i);
    }
    for (const auto& [handle, indices] : of_handle) groups.JoinAll(indices);
    for (const Node* node : order_) {
      if (Staged(*node)) groups.JoinAll(source_sets_.Members(UnitOf(*node)));
    }
    group_of_source_.resize(sources_.size());
    std::vector<InternedSets::Id> group_set(sources_.size(),
                                            InternedSets::kEmpty);
    for (size_t i = 0; i < sources_.size(); ++i) {
      const int group = group_of_source_[i] = groups.Find(i);
      if (Staged(*sources_[i])) {
        group_set[group] =
            source_sets_.Union(group_set[group], source_sets_.Single(i));
      }
    }

    std::vector<bool> apart(sources_.size(), false);  // By group.
    for (size_t i = 0; i < sources_.size(); ++i) {
      const int group = groups.Find(i);
      if (Staged(*sources_[i]) && MayAdvanceApart(*sources_[i]) &&
          source_sets_.Members(group_set[group]).size() >
              of_handle[IteratorOf(*sources_[i])].size()) {
        apart[group] = true;
      }
    }
    for (const Node* node : order_) {
      if (!Staged(*node) || IsDraw(*node) || !FeedsStep(*node)) continue;
      const int group = GroupOf(*node);
      if (source_set_[node->id()] != group_set[group]) apart[group] = true;
    }
    for (const Node* node : order_) {
      if (!Staged(*node) || !apart[GroupOf(*node)]) continue;
      const bool mixes = source_sets_.Members(UnitOf(*node)).size() > 1;
      const bool shares_iterator = roles_[node->id()] == NodeRole::kSource &&
                                   of_handle[IteratorOf(*node)].size() > 1;
      if (mixes || shares_iterator) {
        MoveToStep(*node, {StepReason::kMixedSources, node});
      }
    }
    return SpreadAny();
  }

  // Whether `source` may have to advance, or begin anew, without others that it
  // is joined with: a stage of tf.staged has a runner of its own, and what is
  // staged of an iterator is thrown away when it is initialised again, while
  // the others' part of these records would still be wanted.
  bool MayAdvanceApart(const Node& source) const {
    if (IsBufferTake(source)) return true;
    for (const Edge* edge : IteratorOf(source)->out_edges()) {
      if (Counts(*edge->dst()) && IsIteratorInitializer(*edge->dst())) {
        return true;
      }
    }
    return false;
  }

  // The sources that have to advance together because of a staged node.
  InternedSets::Id UnitOf(const Node& node) const {
    return IsDraw(node) ? leads_to_set_[node.id()] : source_set_[node.id()];
  }

  // The group of sources to which a staged node belongs.
  int GroupOf(const Node& node) const {
    return group_of_source_[source_sets_.Members(UnitOf(node)).front()];
  }

  bool FeedsStep(const Node& node) const {
    for (const Edge* edge : node.out_edges()) {
      if (Counts(*edge->dst()) && !Staged(*edge->dst())) return true;
    }
    return false;
  }

  std::vector<StagedRegion> MakeRegions() {
    std::map<int, StagedRegion> by_group;
    for (const Node* node : order_) {
      if (!Staged(*node)) continue;
      StagedRegion& region = by_group[GroupOf(*node)];
      region.nodes.push_back(node);
      if (roles_[node->id()] == NodeRole::kSource) {
        region.sources.push_back(node);
      }
      AddBoundary(*node, &region);
    }
    std::vector<StagedRegion> regions;
    for (auto& [group, region] : by_group) {
      if (region.boundary.empty()) {
        for (const Node* node : region.nodes) {
          causes_[node->id()] = {StepReason::kNothingToCarry, node};
        }
        continue;
      }
      AddUnusedOutputs(&region);
      std::sort(region.sources.begin(), region.sources.end(), ByName);
      std::sort(region.boundary.begin(), region.boundary.end(),
                [](const StagedTensor& a, const StagedTensor& b) {
                  return std::tie(a.node->name(), a.index) <
                         std::tie(b.node->name(), b.index);
                });
      std::sort(region.control_boundary.begin(), region.control_boundary.end(),
                ByName);
      regions.push_back(std::move(region));
    }
    std::sort(regions.begin(), regions.end(),
              [](const StagedRegion& a, const StagedRegion& b) {
                return ByName(a.sources.front(), b.sources.front());
              });
    ExplainTheRest();
    return regions;
  }

  void AddBoundary(const Node& node, StagedRegion* region) const {
    std::vector<bool> carried(node.num_outputs(), false);
    bool waited_for = false;
    for (const Edge* edge : node.out_edges()) {
      if (!Counts(*edge->dst()) || Staged(*edge->dst())) continue;
      if (edge->IsControlEdge()) {
        waited_for = true;
      } else {
        carried[edge->src_output()] = true;
      }
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (carried[i]) region->boundary.push_back({&node, i});
    }
    if (waited_for) region->control_boundary.push_back(&node);
  }

  // What a source yields and nothing uses is there to be fetched. It comes with
  // the record at no cost, unless it would tell less than all sources.
  void AddUnusedOutputs(StagedRegion* region) const {
    if (region->sources.size() > 1) return;
    const Node* source = region->sources.front();
    std::vector<bool> used(source->num_outputs(), false);
    for (const Edge* edge : source->out_edges()) {
      if (!edge->IsControlEdge() && Counts(*edge->dst())) {
        used[edge->src_output()] = true;
      }
    }
    for (int i = 0; i < source->num_outputs(); ++i) {
      if (!used[i]) region->boundary.push_back({source, i});
    }
  }

  void ExplainTheRest() {
    for (const Node* node : order_) {
      if (InStep(*node) || Staged(*node)) continue;
      causes_[node->id()] = {source_set_[node->id()] == InternedSets::kEmpty
                                 ? StepReason::kNoSource
                                 : StepReason::kUnneeded,
                             nullptr};
    }
  }

  const Graph& graph_;
  const NodeFilter& filter_;
  // Whether the node is looked at. Not so the graph's own source and sink.
  std::vector<bool> counts_;
  // What is not kNone is in the step.
  std::vector<StepCause>& causes_;
  std::vector<NodeRole> roles_;
  std::vector<const Node*> sources_;  // By index of the source.
  std::map<const Node*, int> source_index_;
  // Nodes new to the step, for Spread.
  std::deque<const Node*> moved_;
  // The nodes that were not in the step at first, each after its inputs.
  std::vector<const Node*> order_;

  // Of nodes that are not in the step:
  InternedSets source_sets_;
  // The sources that the node depends on.
  std::vector<InternedSets::Id> source_set_;
  // Whether the node, or what it depends on, is NodeRole::kOncePerRecord.
  std::vector<bool> once_per_record_;
  // Whether a node of the step depends on the node.
  std::vector<bool> needed_;
  // Of draws: the sources of all that the draw is staged for.
  std::vector<InternedSets::Id> leads_to_set_;

  std::vector<int> group_of_source_;  // By index of the source.
};

}  // namespace

std::string StagedTensor::name() const {
  return strings::StrCat(node->name(), ":", index);
}

StagePartition::StagePartition(const Graph& graph, const NodeFilter& counts) {
  regions_ = Partitioner(graph, counts, &causes_).Run();
}

StepCause StagePartition::WhyNot(const Node& node) const {
  return causes_[node.id()];
}

}  // namespace staging
}  // namespace tensorflow
