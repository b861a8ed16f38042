// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/control_flow.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/interned_sets.h"
#include "tensorflow_staging/core/graph/facts/union_find.h"

namespace tensorflow {
namespace staging {
namespace {

// The number of the frame outside all loops.
constexpr int kRootFrame = 0;

// A node, or one of its outputs, is alive if every literal of its condition
// holds. A literal is the number of a branch of a choice.
using Condition = InternedSets::Id;
constexpr Condition kAlways = InternedSets::kEmpty;
constexpr int kTrueBranch = 1;

std::vector<int> Difference(const std::vector<int>& a,
                            const std::vector<int>& b) {
  std::vector<int> difference;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::back_inserter(difference));
  return difference;
}

// The conditions that the Switches of a graph make.
class Conditions {
 public:
  // What Switches with one predicate choose.
  struct Choice {
    const Node* predicate;
    int branches;
    int first_literal;  // The literal of the first branch.
  };

  const std::vector<int>& LiteralsOf(Condition condition) const {
    return literals_.Members(condition);
  }
  const Choice& ChoiceOf(int literal) const {
    return choices_[choice_of_literal_[literal]];
  }

  Condition Both(Condition a, Condition b) { return literals_.Union(a, b); }

  // Returns the condition under which output `output` of `node` is alive if the
  // node is under `condition`.
  Condition OfOutput(const Node& node, Condition condition, int output) {
    const auto it = choice_of_switch_.find(&node);
    if (it == choice_of_switch_.end()) return condition;
    return Both(condition,
                literals_.Single(choices_[it->second].first_literal + output));
  }

  // Finds the choice that a Switch makes. Identities of one tensor are one
  // predicate: tf.cond has a Switch of the predicate itself, and others of its
  // Identity. Returns false if the Switch makes none that is known.
  bool AddSwitch(const Node& node) {
    const Edge* edge = nullptr;
    if ((node.type_string() != "Switch" && node.type_string() != "_SwitchN") ||
        !node.input_edge(1, &edge).ok()) {
      return false;
    }
    const Edge* input = edge;
    while (input->src()->IsIdentity() &&
           input->src()->input_edge(0, &input).ok()) {
      edge = input;
    }
    const int branches = node.num_outputs();
    const auto [it, inserted] = choice_numbers_.emplace(
        std::make_tuple(edge->src(), edge->src_output(), branches),
        choices_.size());
    if (inserted) {
      const int first_literal = choice_of_literal_.size();
      choices_.push_back({edge->src(), branches, first_literal});
      choice_of_literal_.resize(first_literal + branches, it->second);
    }
    choice_of_switch_[&node] = it->second;
    return true;
  }

  // Sets `*any` to the condition under which one of `conditions` holds. Returns
  // false if that is not found to be a conjunction of literals.
  bool Any(const std::vector<Condition>& conditions, Condition* any) {
    std::vector<int> common = LiteralsOf(conditions.front());
    for (Condition condition : conditions) {
      common = Difference(common, Difference(common, LiteralsOf(condition)));
    }
    *any = SetOf(common);
    // All branches of a choice together are no condition.
    std::set<Condition> found(conditions.begin(), conditions.end());
    std::vector<Condition> to_visit(found.begin(), found.end());
    // How many branches of a choice were found together with a condition.
    std::map<std::pair<Condition, int>, int> branches;
    while (!to_visit.empty() && found.count(*any) == 0) {
      const std::vector<int>& members = LiteralsOf(to_visit.back());
      to_visit.pop_back();
      for (int literal : Difference(members, common)) {
        const Condition rest = SetOf(Difference(members, {literal}));
        const int choice = choice_of_literal_[literal];
        if (++branches[{rest, choice}] == choices_[choice].branches &&
            found.insert(rest).second) {
          to_visit.push_back(rest);
        }
      }
    }
    return found.count(*any) > 0;
  }

 private:
  Condition SetOf(const std::vector<int>& literals) {
    Condition set = kAlways;
    for (int literal : literals) set = Both(set, literals_.Single(literal));
    return set;
  }

  InternedSets literals_;
  std::vector<Choice> choices_;
  // By predicate and number of branches.
  std::map<std::tuple<const Node*, int, int>, int> choice_numbers_;
  std::map<const Node*, int> choice_of_switch_;
  std::vector<int> choice_of_literal_;
};

// By node id: whether the node counts.
using Counts = std::vector<bool>;

bool Has(const Counts& counts, const Node& node) {
  return node.IsOp() && counts[node.id()];
}

bool HasControlFlow(const Graph& graph, const Counts& counts) {
  for (const Node* node : graph.op_nodes()) {
    if (counts[node->id()] && (node->IsControlFlow() || node->IsLoopCond())) {
      return true;
    }
  }
  return false;
}

// Sorts the nodes that count topologically, without regard to back edges. Adds
// to `*irregular` those that are behind other cycles.
std::vector<const Node*> Order(const Graph& graph, const Counts& counts,
                               std::vector<const Node*>* irregular) {
  std::vector<const Node*> order;
  std::vector<int> missing(graph.num_node_ids(), 0);
  for (const Node* node : graph.op_nodes()) {
    if (!Has(counts, *node)) continue;
    for (const Edge* edge : node->in_edges()) {
      if (Has(counts, *edge->src()) && !IsBackEdge(*edge)) {
        ++missing[node->id()];
      }
    }
    if (missing[node->id()] == 0) order.push_back(node);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Edge* edge : order[i]->out_edges()) {
      const Node* next = edge->dst();
      if (Has(counts, *next) && !IsBackEdge(*edge) &&
          --missing[next->id()] == 0) {
        order.push_back(next);
      }
    }
  }
  for (const Node* node : graph.op_nodes()) {
    if (missing[node->id()] > 0) irregular->push_back(node);
  }
  return order;
}

// Finds under which condition each node is alive, and the frame of what it
// yields.
class Finder {
 public:
  Finder(const Graph& graph, const Counts& counts)
      : graph_(graph),
        counts_(counts),
        condition_of_(graph.num_node_ids(), kAlways),
        frames_(graph.num_node_ids(), kRootFrame) {}

  ControlFlow Find() {
    for (const Node* node : Order(graph_, counts_, &found_.irregular)) {
      if (!Visit(*node)) found_.irregular.push_back(node);
    }
    CheckLoops();
    found_.is_inside.assign(graph_.num_node_ids(), false);
    for (const Node* node : graph_.op_nodes()) {
      const int id = node->id();
      found_.is_inside[id] =
          condition_of_[id] != kAlways || frames_[id] != kRootFrame;
    }
    FindConstructs();
    return std::move(found_);
  }

 private:
  // Finds the condition and the frame of the outputs of `node`. Returns false
  // if the node is irregular.
  bool Visit(const Node& node) {
    Condition& condition = condition_of_[node.id()];
    int& frame = frames_[node.id()];
    bool first = true;
    for (const Edge* edge : node.in_edges()) {
      if (!Has(counts_, *edge->src()) || IsBackEdge(*edge)) continue;
      if (!first && frame != frames_[edge->src()->id()]) return false;
      first = false;
      frame = frames_[edge->src()->id()];
      condition = conditions_.Both(condition, ConditionOf(*edge));
    }
    if (node.IsSwitch()) return conditions_.AddSwitch(node);
    if (node.IsMerge()) return VisitMerge(node, &condition);
    if (node.IsEnter()) return VisitEnter(node, condition, &frame);
    if (node.IsExit()) return VisitExit(node, &condition, &frame);
    if (node.IsNextIteration() || node.IsLoopCond()) {
      return frame != kRootFrame;
    }
    return true;
  }

  // The condition under which the tensor of `edge` is alive.
  Condition ConditionOf(const Edge& edge) {
    const Condition condition = condition_of_[edge.src()->id()];
    if (!edge.src()->IsSwitch() || edge.IsControlEdge()) return condition;
    return conditions_.OfOutput(*edge.src(), condition, edge.src_output());
  }

  // A Merge is alive if one of its inputs is. Its control inputs may be dead.
  bool VisitMerge(const Node& node, Condition* condition) {
    const Edge* enter = nullptr;
    const Edge* back_edge = nullptr;
    std::vector<const Edge*> inputs;
    if (!node.input_edges(&inputs).ok()) return false;
    std::vector<Condition> conditions;
    for (const Edge* edge : inputs) {
      if (IsBackEdge(*edge)) {
        back_edge = edge;
      } else {
        enter = edge;
        conditions.push_back(ConditionOf(*edge));
      }
    }
    if (conditions.empty()) return false;
    const bool known = conditions_.Any(conditions, condition);
    if (back_edge == nullptr) return known;
    back_edges_.push_back(back_edge);
    return node.num_inputs() == 2 && enter->src()->IsEnter();
  }

  bool VisitEnter(const Node& node, Condition condition, int* frame) {
    std::string name;
    if (!TryGetNodeAttr(node.attrs(), kFrameNameAttr, &name)) return false;
    const auto [it, inserted] =
        frame_numbers_.emplace(std::make_pair(*frame, name), loops_.size());
    if (inserted) loops_.push_back({*frame, &node, kAlways});
    *frame = it->second;
    Loop& loop = loops_[*frame];
    loop.condition = conditions_.Both(loop.condition, condition);
    return true;
  }

  // An Exit yields what its Switch yields at the end of the loop.
  bool VisitExit(const Node& node, Condition* condition, int* frame) {
    const Edge* input = nullptr;
    const Edge* predicate = nullptr;
    if (*frame == kRootFrame || !node.input_edge(0, &input).ok() ||
        !input->src()->IsSwitch() || input->src_output() == kTrueBranch ||
        !input->src()->input_edge(1, &predicate).ok() ||
        !predicate->src()->IsLoopCond()) {
      return false;
    }
    exits_.emplace_back(&node, *frame);
    *condition = condition_of_[input->src()->id()];
    *frame = loops_[*frame].parent;
    return true;
  }

  // Checks that loops which begin run to their end: no variable of a loop may
  // be dead in an iteration unless it has been so from the beginning.
  void CheckLoops() {
    for (const Edge* edge : back_edges_) {
      const Node* merge = edge->dst();
      const int frame = frames_[merge->id()];
      const std::vector<int> added =
          Difference(conditions_.LiteralsOf(ConditionOf(*edge)),
                     conditions_.LiteralsOf(condition_of_[merge->id()]));
      const bool runs_on = absl::c_all_of(added, [this, frame](int literal) {
        const Conditions::Choice& choice = conditions_.ChoiceOf(literal);
        return choice.predicate->IsLoopCond() &&
               literal == choice.first_literal + kTrueBranch &&
               frames_[choice.predicate->id()] == frame;
      });
      if (frame == kRootFrame || !runs_on ||
          frames_[edge->src()->id()] != frame) {
        found_.irregular.push_back(merge);
      }
    }
    for (const auto& [exit, frame] : exits_) {
      if (!Difference(conditions_.LiteralsOf(condition_of_[exit->id()]),
                      conditions_.LiteralsOf(loops_[frame].condition))
               .empty()) {
        found_.irregular.push_back(exit);
      }
    }
  }

  void FindConstructs() {
    UnionFind groups(graph_.num_node_ids());
    for (const Edge* edge : graph_.edges()) {
      if (!Has(counts_, *edge->src()) || !Has(counts_, *edge->dst())) continue;
      if (ConditionOf(*edge) != kAlways ||
          frames_[edge->src()->id()] != kRootFrame) {
        groups.Join(edge->src()->id(), edge->dst()->id());
      }
    }
    for (const Node* node : graph_.op_nodes()) {
      if (node->IsEnter() && frames_[node->id()] != kRootFrame) {
        groups.Join(node->id(), loops_[frames_[node->id()]].enter->id());
      }
    }
    std::vector<int> size(graph_.num_node_ids(), 0);
    for (const Node* node : graph_.op_nodes()) ++size[groups.Find(node->id())];
    std::vector<int> number(graph_.num_node_ids(), ControlFlow::kNoConstruct);
    found_.construct_of = number;
    for (const Node* node : graph_.op_nodes()) {
      const int group = groups.Find(node->id());
      if (size[group] == 1) continue;
      if (number[group] == ControlFlow::kNoConstruct) {
        number[group] = found_.constructs.size();
        found_.constructs.emplace_back();
        found_.has_result.push_back(false);
      }
      found_.construct_of[node->id()] = number[group];
      found_.constructs[number[group]].push_back(node);
      if (!found_.is_inside[node->id()] && !node->IsSwitch()) {
        found_.has_result[number[group]] = true;
      }
    }
  }

  struct Loop {
    int parent;         // The number of the frame around the loop.
    const Node* enter;  // One of its Enters.
    // The condition under which all of its Enters are alive.
    Condition condition;
  };

  const Graph& graph_;
  const Counts& counts_;
  ControlFlow found_;
  Conditions conditions_;
  // By node id, for the node's outputs. Outputs of a Switch have a literal
  // more.
  std::vector<Condition> condition_of_;
  std::vector<int> frames_;
  // By number of the frame.
  std::vector<Loop> loops_ = {{kRootFrame, nullptr, kAlways}};
  std::map<std::pair<int, std::string>, int> frame_numbers_;
  std::vector<const Edge*> back_edges_;
  // The Exits, each with the frame that it leaves.
  std::vector<std::pair<const Node*, int>> exits_;
};

}  // namespace

bool IsBackEdge(const Edge& edge) {
  return !edge.IsControlEdge() && edge.src()->IsNextIteration() &&
         edge.dst()->IsMerge();
}

ControlFlow FindControlFlow(const Graph& graph,
                            const std::vector<bool>& counts) {
  if (HasControlFlow(graph, counts)) return Finder(graph, counts).Find();
  ControlFlow none;
  none.construct_of.assign(graph.num_node_ids(), ControlFlow::kNoConstruct);
  none.is_inside.assign(graph.num_node_ids(), false);
  return none;
}

}  // namespace staging
}  // namespace tensorflow
