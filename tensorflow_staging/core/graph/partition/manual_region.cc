// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/manual_region.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/control_flow.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {
namespace {

using Nodes = std::vector<const Node*>;
using NodeSet = absl::flat_hash_set<const Node*>;

class ManualRegion {
 public:
  ManualRegion(const Graph& graph, const Nodes& puts, const Node& take,
               const NodeFilter& counts)
      : graph_(graph),
        puts_(puts),
        take_(take),
        counts_(counts),
        roles_(graph),
        put_set_(puts.begin(), puts.end()) {}

  StagedRegion Find(RecordContent content) {
    leading_ = LeadingTo(puts_);
    if (leading_.contains(&take_)) return {};
    FindControlFlowOfRegion();
    do {
      FindNodes();
    } while (AddWholeConstructs() || AddArrayReaders());
    // Half of a construct cannot run ahead of the other half.
    if (leading_.contains(&take_)) return {};
    StagedRegion region;
    for (const Node* node : graph_.op_nodes()) {
      if (!nodes_.contains(node)) continue;
      region.nodes.push_back(node);
      if (IsFirst(*node)) region.sources.push_back(node);
    }
    absl::c_sort(region.sources, [](const Node* a, const Node* b) {
      return a->name() < b->name();
    });
    if (puts_.size() == 1) FindBoundary(content, &region);
    return region;
  }

 private:
  static NodeSet LeadingTo(const Nodes& nodes) {
    const Nodes found = WithAncestors(
        nodes, [](const Edge& edge) { return !IsFedByStages(edge); });
    return {found.begin(), found.end()};
  }

  void FindControlFlowOfRegion() {
    std::vector<bool> counts(graph_.num_node_ids(), false);
    const bool any = absl::c_any_of(leading_, [](const Node* node) {
      return node->IsSwitch() || node->IsEnter();
    });
    for (const Node* node : graph_.op_nodes()) counts[node->id()] = any;
    control_flow_ = FindControlFlow(graph_, counts);
  }

  // Finds the drawn nodes that lead to a Put, and what depends on them.
  void FindNodes() {
    nodes_.clear();
    drawn_.clear();
    Nodes found;
    const auto add = [&](const Node* node) {
      // A node that is fed has to keep its name.
      if (leading_.contains(node) && !put_set_.contains(node) &&
          !IsOutsideHandleOp(*node) &&
          node->attrs().Find(kFedOutputsAttr) == nullptr &&
          nodes_.insert(node).second) {
        found.push_back(node);
      }
    };
    for (const Node* node : leading_) {
      if (!IsDrawn(*node, &roles_)) continue;
      drawn_.insert(node);
      add(node);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      const int construct = control_flow_.construct_of[found[i]->id()];
      if (construct != ControlFlow::kNoConstruct) {
        for (const Node* other : control_flow_.constructs[construct])
          add(other);
      }
      for (const Edge* edge : found[i]->out_edges()) add(edge->dst());
    }
  }

  // Lets the constructs of which the region has a node lead to the Put as a
  // whole. Returns whether that changes anything.
  bool AddWholeConstructs() {
    const size_t size = leading_.size();
    for (const Nodes& construct : control_flow_.constructs) {
      if (absl::c_none_of(construct, [this](const Node* node) {
            return nodes_.contains(node);
          })) {
        continue;
      }
      const NodeSet added = LeadingTo(construct);
      leading_.insert(added.begin(), added.end());
    }
    return leading_.size() > size;
  }

  // A TensorArray lives in the run that has created it. Lets what uses one that
  // the region uses lead to the Put, too, if it can run ahead. Returns whether
  // that changes anything.
  bool AddArrayReaders() {
    const size_t size = leading_.size();
    for (const Node* array : graph_.op_nodes()) {
      if (!IsTensorArray(*array) || !IsUsedInRegion(*array)) continue;
      for (const Edge* edge : array->out_edges()) {
        if (!edge->IsControlEdge()) AddArrayReader(*edge->dst());
      }
    }
    return leading_.size() > size;
  }

  bool IsUsedInRegion(const Node& node) const {
    return absl::c_any_of(node.out_edges(), [this](const Edge* edge) {
      return nodes_.contains(edge->dst());
    });
  }

  void AddArrayReader(const Node& reader) {
    if (leading_.contains(&reader) || !counts_(reader)) return;
    const int construct = control_flow_.construct_of[reader.id()];
    const Nodes readers = construct == ControlFlow::kNoConstruct
                              ? Nodes{&reader}
                              : control_flow_.constructs[construct];
    const NodeSet added = LeadingTo(readers);
    if (absl::c_any_of(added, [this](const Node* node) {
          return !leading_.contains(node) && BelongsToStep(*node);
        })) {
      return;
    }
    leading_.insert(added.begin(), added.end());
    array_readers_.insert(readers.begin(), readers.end());
  }

  // Whether it is the step's: what it feeds, its records, and the variables that
  // it may change.
  bool BelongsToStep(const Node& node) const {
    return &node == &take_ || IsHandleOp(node) ||
           absl::StartsWith(node.type_string(), "Placeholder");
  }

  bool IsOutsideHandleOp(const Node& node) const {
    return IsHandleOp(node) &&
           control_flow_.construct_of[node.id()] == ControlFlow::kNoConstruct;
  }

  bool IsFirst(const Node& node) const {
    return absl::c_none_of(node.in_edges(), [this](const Edge* edge) {
      return nodes_.contains(edge->src());
    });
  }

  // Whether a step can compute the rest of the region from what `node` and the
  // other elements yield.
  bool IsElement(const Node& node) const {
    // A Switch at the entry of a conditional is no source, and yields only one
    // of its outputs.
    if (IsFirst(node)) return !node.IsSwitch();
    const int construct = control_flow_.construct_of[node.id()];
    if ((node.IsMerge() || node.IsExit()) &&
        construct != ControlFlow::kNoConstruct) {
      return absl::c_any_of(
          control_flow_.constructs[construct],
          [this](const Node* other) { return drawn_.contains(other); });
    }
    // TensorFlow replaces control flow of version 2, so a run does not find it
    // in the region, where this node uses it.
    return absl::c_any_of(node.in_edges(), [this](const Edge* edge) {
      const Node& input = *edge->src();
      return !edge->IsControlEdge() && drawn_.contains(&input) &&
             (input.IsIfNode() || input.IsCaseNode() || input.IsWhileNode());
    });
  }

  // Whether it is the flow of a TensorArray, also behind control flow. Whoever
  // uses it uses the array, which lives in the run that has filled it: the step
  // has to fill an array of its own.
  static bool IsFlow(const Node& node, int output) {
    NodeSet seen;
    std::vector<std::pair<const Node*, int>> to_visit = {{&node, output}};
    while (!to_visit.empty()) {
      const auto [visited, index] = to_visit.back();
      to_visit.pop_back();
      if (IsTensorArrayFlow(*visited, index)) return true;
      const bool passes_on = visited->IsIdentity() || visited->IsControlFlow();
      if (!passes_on || visited->output_type(index) != DT_FLOAT ||
          !seen.insert(visited).second) {
        continue;
      }
      for (const Edge* edge : visited->in_edges()) {
        if (edge->IsControlEdge()) continue;
        to_visit.emplace_back(edge->src(), edge->src_output());
      }
    }
    return false;
  }

  bool IsUsedOutside(const Node& node, int output) const {
    return absl::c_any_of(node.out_edges(), [&](const Edge* edge) {
      const Node* user = edge->dst();
      return edge->src_output() == output && user->IsOp() &&
             !nodes_.contains(user) && !put_set_.contains(user) &&
             counts_(*user);
    });
  }

  // Returns what `node` yields at `output` or, if it is a stand-in of a stage
  // before this one, the tensor of that stage's record.
  TakenTensor PassedOn(const Node& node, int output) const {
    std::vector<int> outputs;
    if (IsStandIn(node) && OutputsOfInputs(node, &outputs).ok()) {
      for (const Edge* edge : node.in_edges()) {
        const int input = edge->dst_input();
        if (edge->IsControlEdge() || outputs[input] != output) continue;
        const TakenTensor taken = TakenTensorOf(*edge);
        if (nodes_.contains(taken.node)) return taken;
      }
    }
    return {&node, output};
  }

  void FindBoundary(RecordContent content, StagedRegion* region) const {
    absl::flat_hash_set<std::pair<const Node*, int>> carried;
    const auto carry = [&](const Node& node, int output, bool only_if_asked) {
      if (!IsHandle(node.output_type(output)) &&
          !control_flow_.is_inside[node.id()] && !IsFlow(node, output) &&
          carried.insert({&node, output}).second) {
        region->boundary.push_back({&node, output, only_if_asked});
      }
    };
    std::vector<const Edge*> inputs;
    if (!puts_.front()->input_edges(&inputs).ok()) return;
    for (const Edge* edge : inputs) {
      carried.insert({edge->src(), edge->src_output()});
      region->boundary.push_back({edge->src(), edge->src_output()});
    }
    for (const Node* node : region->nodes) {
      const bool is_element =
          content == RecordContent::kElements && IsElement(*node);
      for (int i = 0; i < node->num_outputs(); ++i) {
        // The step would fill an array of its own for it, which it cannot do
        // again if that draws.
        const bool is_used =
            IsUsedOutside(*node, i) || array_readers_.contains(node);
        if (!is_used && !is_element) continue;
        const TakenTensor passed_on = PassedOn(*node, i);
        carry(*passed_on.node, passed_on.output, !is_used);
      }
    }
    std::sort(region->boundary.begin() + inputs.size(), region->boundary.end(),
              [](const StagedTensor& a, const StagedTensor& b) {
                return std::tie(a.node->name(), a.index) <
                       std::tie(b.node->name(), b.index);
              });
  }

  const Graph& graph_;
  const Nodes& puts_;
  const Node& take_;
  const NodeFilter& counts_;
  NodeRoles roles_;
  const NodeSet put_set_;
  ControlFlow control_flow_;
  // The nodes that lead to a Put; of these, the drawn ones, and the nodes of the
  // region.
  NodeSet leading_;
  NodeSet drawn_;
  NodeSet nodes_;
  // What reads a TensorArray of the region, only for the step.
  NodeSet array_readers_;
};

}  // namespace

bool IsHandleOp(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() > 0 &&
         absl::c_all_of(node.output_types(), IsHandle);
}

bool IsDrawn(const Node& node, NodeRoles* roles) {
  return node.num_outputs() > 0 && !IsIteratorToStringHandle(node) &&
         !absl::c_all_of(node.output_types(), IsHandle) &&
         !roles->IsRepeatable(node);
}

StagedRegion FindManualRegion(const Graph& graph,
                              const std::vector<const Node*>& puts,
                              const Node& take, const NodeFilter& counts,
                              RecordContent content) {
  return ManualRegion(graph, puts, take, counts).Find(content);
}

}  // namespace staging
}  // namespace tensorflow
