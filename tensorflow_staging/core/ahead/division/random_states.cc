// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/random_states.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow_staging/core/ahead/division/draw.h"
#include "tensorflow_staging/core/ahead/division/loop_draws.h"

namespace tensorflow {
namespace staging {
namespace {

using NodesInOrder = std::vector<const Node*>;

// Returns the nodes of the flat graph to which `start` leads along the edges that
// pass the filter, with `start` itself.
NodeSet ReachedFrom(const FlatStep& flat, const NodesInOrder& start,
                    const EdgeFilter& passes) {
  NodeSet reached;
  DFSFrom(
      flat.graph(), start,
      [&reached](const Node* node) { reached.insert(node); }, /*leave=*/{},
      /*stable_comparator=*/{}, passes);
  return reached;
}

// Returns the nodes of the flat graph that compute with an element.
NodeSet DependentOnElements(const FlatStep& flat) {
  NodesInOrder elements;
  for (const SiteNode& read : flat.reads()) elements.push_back(flat.Find(read));
  return ReachedFrom(flat, elements,
                     [](const Edge& edge) { return !edge.IsControlEdge(); });
}

bool IsAhead(const SidesBySite& sites, const SiteNode& node) {
  const auto sides = sites.find(node.site);
  return sides != sites.end() && sides->second.ahead.count(node.node) > 0;
}

// Whether anything ahead computes with one of the draws, which are ahead, and is
// one of the nodes that are `dependent` on an element.
bool MeetElement(const FlatStep& flat, const SidesBySite& sites,
                 const std::vector<Draw>& draws, const NodeSet& dependent) {
  NodesInOrder start;
  for (const Draw& draw : draws) start.push_back(flat.Find(draw));
  const NodeSet reached = ReachedFrom(flat, start, [&](const Edge& edge) {
    return !edge.IsControlEdge() && IsAhead(sites, flat.Original(*edge.dst()));
  });
  return absl::c_any_of(reached, [&dependent](const Node* node) {
    return dependent.count(node) > 0;
  });
}

// Adds to `*value` the nodes of the flat graph from which a counter's assignment
// has its value. Returns whether these are constants, reads of the counter, and
// what is computed from them alone.
bool AddValueOf(const FlatStep& flat, const Draw& assignment,
                const std::vector<Draw>& draws, NodeSet* value) {
  NodesInOrder to_visit = {flat.Find(assignment)};
  while (!to_visit.empty()) {
    const Node* const of = to_visit.back();
    to_visit.pop_back();
    for (const Edge* edge : of->in_edges()) {
      const Node* const node = edge->src();
      // What is ahead has no input but handles and constants.
      if (edge->IsControlEdge() || node->IsArg() ||
          !value->insert(node).second) {
        continue;
      }
      const SiteNode original = flat.Original(*node);
      if (original.node == nullptr) return false;
      if (IsCounterRead(*original.node)) {
        if (!absl::c_linear_search(draws, original)) return false;
      } else if (node->op_def().is_stateful()) {
        return false;
      } else {
        to_visit.push_back(node);
      }
    }
  }
  return true;
}

// Whether the rest can change the state as `draw` does, one of `draws`. In a step
// that fails without an element, a conditional that chooses without one makes the
// draws of its branch, and none that the rest could take from a record. Adds to
// `*value` what of the flat graph computes the next value of a counter.
bool CanFollow(const FlatStep& flat, const Draw& draw,
               const std::vector<Draw>& draws, const NodeSet& dependent,
               NodeSet* value) {
  if (IsCounterAssignment(*draw.node)) {
    return AddValueOf(flat, draw, draws, value);
  }
  const Node* const node = flat.Find(draw);
  const Edge* choice = nullptr;
  return !(node->IsIfNode() || node->IsCaseNode()) ||
         dependent.count(node) == 0 ||
         (node->input_edge(0, &choice).ok() &&
          dependent.count(choice->src()) > 0);
}

// Lets the rest of the step change a state as the draws ahead change its copy;
// `value` is what computes the next value of a counter.
Status FollowInRest(const FlatStep& flat, const std::vector<Draw>& draws,
                    const NodeSet& dependent, const NodeSet& value,
                    SidesBySite* sites) {
  for (const Draw& draw : draws) {
    SiteSides& sides = (*sites)[draw.site];
    const bool is_op = draw.algorithm == 0;
    // A step that fails without an element makes such draws all the same.
    if (!is_op && dependent.count(flat.Find(draw)) > 0) {
      TF_RETURN_IF_ERROR(MoveStateInRest(draw, &sides));
    } else {
      sides.twice.insert(draw.node);
    }
  }
  for (const Node* node : value) {
    const SiteNode original = flat.Original(*node);
    if (IsAhead(*sites, original)) {
      (*sites)[original.site].repeated.insert(original.node);
    }
  }
  return OkStatus();
}

// Whether anything but `draws` and `loop` uses `state`, or an identity of it.
bool HasOtherUses(const FlatStep& flat, const Node& state,
                  const std::vector<Draw>& draws, const Node* loop) {
  return absl::c_any_of(state.out_edges(), [&](const Edge* edge) {
    const SiteNode user = flat.Original(*edge->dst());
    const bool draws_from_it = absl::c_any_of(draws, [&](const Draw& draw) {
      return draw == user && draw.input == edge->dst_input();
    });
    if (edge->IsControlEdge() || draws_from_it) return false;
    if (user.node == nullptr) return true;
    return user.node != loop && (!user.node->IsIdentity() ||
                                 HasOtherUses(flat, *edge->dst(), draws, loop));
  });
}

}  // namespace

Status FindRandomStates(const CallSite& root, const Node* loop,
                        const FlatStep& flat, std::vector<StepInput>* inputs,
                        SidesBySite* sites, std::vector<RandomState>* states,
                        bool* dropped) {
  *dropped = false;
  const NodeSet dependent = DependentOnElements(flat);
  // By state.
  std::vector<NodeSet> values;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const std::vector<Draw>& draws = flat.DrawsOf(i);
    if (draws.empty()) continue;
    const Node* state = flat.Find({&root, root.body->arg_nodes[i]});
    NodeSet value;
    const bool can_be_ahead =
        !HasOtherUses(flat, *state, draws, loop) &&
        absl::c_all_of(draws, [&](const Draw& draw) {
          return IsAhead(*sites, draw) &&
                 CanFollow(flat, draw, draws, dependent, &value);
        });
    if (can_be_ahead && MeetElement(flat, *sites, draws, dependent)) {
      states->push_back({static_cast<int>(i), TypeOfState(draws[0])});
      values.push_back(std::move(value));
    } else {
      (*inputs)[i].kind = InputKind::kVariable;
      *dropped = true;
    }
  }
  if (*dropped) return OkStatus();
  for (size_t i = 0; i < states->size(); ++i) {
    TF_RETURN_IF_ERROR(FollowInRest(flat, flat.DrawsOf((*states)[i].input),
                                    dependent, values[i], sites));
  }
  return OkStatus();
}

bool DropRandomStates(const FlatStep& flat, std::vector<StepInput>* inputs) {
  bool dropped = false;
  for (size_t i = 0; i < inputs->size(); ++i) {
    if (flat.DrawsOf(i).empty()) continue;
    (*inputs)[i].kind = InputKind::kVariable;
    dropped = true;
  }
  return dropped;
}

}  // namespace staging
}  // namespace tensorflow
