// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/late_iterator_readers.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/resources.h"
#include "tensorflow_staging/core/graph/rewrite/pack_guard.h"

namespace tensorflow {
namespace staging {
namespace {

bool ReadsIterator(const Node& node) {
  return IsSourceOp(node) && !IsBufferTake(node);
}

// Whether both nodes read an iterator in the same way, and from the same shard
// if there are several.
bool ReadAlike(const Node& a, const Node& b) {
  const auto op = [](const Node& node) {
    return node.type_string() == "IteratorGetNextSync" ? "IteratorGetNext"
                                                       : node.type_string();
  };
  if (op(a) != op(b) || a.output_types() != b.output_types()) return false;
  for (int i = 1; i < a.num_inputs(); ++i) {
    const Edge* of_a = nullptr;
    const Edge* of_b = nullptr;
    if (!a.input_edge(i, &of_a).ok() || !b.input_edge(i, &of_b).ok() ||
        of_a->src() != of_b->src() ||
        of_a->src_output() != of_b->src_output()) {
      return false;
    }
  }
  return true;
}

// Whether `stand_in` passes on what one Take yields, at all of its outputs.
bool PassesOnARecord(const Node& stand_in) {
  if (stand_in.num_inputs() != stand_in.num_outputs()) return false;
  const Node* take = nullptr;
  for (const Edge* edge : stand_in.in_edges()) {
    if (edge->IsControlEdge()) continue;
    const TakenTensor taken = TakenTensorOf(*edge);
    if (!IsBufferTake(*taken.node) || (take != nullptr && taken.node != take) ||
        taken.node->output_type(taken.output) !=
            stand_in.input_type(edge->dst_input())) {
      return false;
    }
    take = taken.node;
  }
  return take != nullptr;
}

// The nodes that lead to a Put of the graph.
absl::flat_hash_set<const Node*> NodesThatLeadToPuts(const Graph& graph) {
  std::vector<const Node*> puts;
  for (const Node* node : graph.op_nodes()) {
    if (IsBufferPut(*node)) puts.push_back(node);
  }
  const std::vector<const Node*> nodes = WithAncestors(puts);
  return {nodes.begin(), nodes.end()};
}

class LateSources {
 public:
  explicit LateSources(Graph* graph)
      : graph_(graph),
        resources_(*graph),
        lead_to_puts_(NodesThatLeadToPuts(*graph)) {}

  Status Connect(const std::vector<Node*>& late_sources) {
    TF_RETURN_IF_ERROR(FindStages());
    std::vector<std::pair<Node*, const Node*>> connected;
    for (Node* late : late_sources) {
      const auto it = read_ahead_.find(resources_.IteratorOf(*late));
      if (it == read_ahead_.end()) continue;
      const std::string& stage = it->second;
      const std::string why_not = WhyNot(*late, stage);
      if (why_not.empty()) {
        connected.emplace_back(late, StandInOfSource(stage));
      } else {
        MarkReadsBeside(
            absl::StrCat(
                "Node '", late->name(), "' (", late->type_string(),
                ") was added after stage '", stage,
                "' had begun to read its iterator '", it->first->name(),
                "' ahead of the step, and the records of the stage cannot "
                "replace what it reads: ",
                why_not,
                ". Add the node before the stages start, or let it read "
                "another iterator."),
            late);
      }
    }
    for (const auto& [late, stand_in] : connected) {
      TF_RETURN_IF_ERROR(Replace(late, *stand_in));
    }
    return OkStatus();
  }

 private:
  Status FindStages() {
    for (const Node* node : graph_->op_nodes()) {
      if (IsStandIn(*node)) stand_ins_.emplace(node->name(), node);
      if (!ReadsIterator(*node)) continue;
      std::optional<CloneMark> mark;
      TF_RETURN_IF_ERROR(ReadCloneMark(*node, &mark));
      // Whoever calls get_next() beside a manual stage reads beside it.
      if (!mark || absl::StartsWith(node->name(),
                                    absl::StrCat(mark->stage, "/",
                                                 kManualRegionScope, "/"))) {
        continue;
      }
      read_ahead_.emplace(resources_.IteratorOf(*node), mark->stage);
      sources_[mark->stage].emplace(mark->original, node);
    }
    return OkStatus();
  }

  const Node* StandInOfSource(const std::string& stage) const {
    const auto it = stand_ins_.find(sources_.at(stage).begin()->first);
    return it == stand_ins_.end() ? nullptr : it->second;
  }

  // Returns why `late` cannot take the place of the source of `stage`; empty if
  // it can.
  std::string WhyNot(const Node& late, const std::string& stage) const {
    const auto& sources = sources_.at(stage);
    if (sources.size() > 1) {
      std::vector<std::string> names;
      for (const auto& [name, clone] : sources) names.push_back(name);
      return absl::StrCat("each holds the elements of '",
                          absl::StrJoin(names, "', '"), "'");
    }
    const auto& [name, clone] = *sources.begin();
    if (!ReadAlike(late, *clone)) {
      return absl::StrCat("the stage reads in another way, by '", name, "' (",
                          clone->type_string(), ")");
    }
    if (lead_to_puts_.contains(&late)) {
      return "it leads to a stage of tf.staged, which would take them ahead "
             "of the step, too";
    }
    const Node* stand_in = StandInOfSource(stage);
    if (stand_in == nullptr || !PassesOnARecord(*stand_in) ||
        stand_in->output_types() != late.output_types()) {
      return "they do not hold all that the iterator yields, because "
             "tf.SmartStageOptions has carry_elements=False";
    }
    return "";
  }

  // Replaces `late` by a copy of `stand_in` with a Take of its own.
  Status Replace(Node* late, const Node& stand_in) {
    Node* copy = graph_->CopyNode(&stand_in);
    copy->ClearAttr(kStandInAttr);
    Node* take = nullptr;
    for (const Edge* edge : stand_in.in_edges()) {
      if (edge->IsControlEdge()) continue;
      const TakenTensor taken = TakenTensorOf(*edge);
      if (take == nullptr) {
        take = graph_->CopyNode(taken.node);
        take->set_name(absl::StrCat(taken.node->name(), "/", late->name()));
      }
      graph_->AddEdge(take, taken.output, copy, edge->dst_input());
    }
    TF_RETURN_IF_ERROR(RunWith(*late, take));
    MoveUsers(late, copy, graph_);
    copy->set_name(late->name());
    graph_->RemoveNode(late);
    return OkStatus();
  }

  // Lets `take` wait for what `late` waits for, so that it runs if and when
  // `late` would: in a branch, if it is chosen.
  Status RunWith(const Node& late, Node* take) {
    const std::vector<const Edge*> edges(late.in_edges().begin(),
                                         late.in_edges().end());
    for (const Edge* edge : edges) {
      Node* input = edge->src();
      if (!input->IsOp()) continue;
      // A control edge from a Switch does not depend on the branch.
      if (!edge->IsControlEdge() && IsHandlePassThrough(*input)) {
        TF_RETURN_IF_ERROR(NodeBuilder(absl::StrCat(take->name(), "/input_",
                                                    edge->dst_input()),
                                       "Identity")
                               .Input(input, edge->src_output())
                               .Device(late.requested_device())
                               .Finalize(graph_, &input));
      }
      graph_->AddControlEdge(input, take);
    }
    return OkStatus();
  }

  Graph* const graph_;
  const Resources resources_;
  const absl::flat_hash_set<const Node*> lead_to_puts_;
  // The stage that reads each iterator, by the owner of the iterator.
  std::map<const Node*, std::string> read_ahead_;
  // The sources of each stage that read iterators, by their original names.
  std::map<std::string, std::map<std::string, const Node*>> sources_;
  std::map<std::string, const Node*> stand_ins_;
};

}  // namespace

Status ConnectLateSources(const NodeFilter& counts, Graph* graph) {
  std::vector<Node*> late_sources;
  for (Node* node : graph->op_nodes()) {
    if (ReadsIterator(*node) && !IsClone(*node) && !counts(*node)) {
      late_sources.push_back(node);
    }
  }
  if (late_sources.empty()) return OkStatus();
  TF_RETURN_IF_ERROR(LateSources(graph).Connect(late_sources));
  TF_RETURN_IF_ERROR(GuardPacksOfTakenTensors(graph));
  FixupSourceAndSinkEdges(graph);
  return CheckNamesAreUnique(*graph);
}

}  // namespace staging
}  // namespace tensorflow
