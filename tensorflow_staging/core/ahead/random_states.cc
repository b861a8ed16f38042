// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/random_states.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/ahead/draw.h"
#include "tensorflow_staging/core/ahead/loop_draws.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

using NodesInOrder = std::vector<const Node*>;

bool IsElement(const FlatStep& flat, const Node& node) {
  return IsSourceOp(node) ||
         absl::c_linear_search(flat.reads(), flat.Original(node));
}

// Whether what a node of the flat graph computes depends on an element.
bool DependsOnElement(const FlatStep& flat, const Node& of) {
  std::set<const Node*> visited = {&of};
  NodesInOrder to_visit = {&of};
  while (!to_visit.empty()) {
    const Node* const node = to_visit.back();
    to_visit.pop_back();
    if (IsElement(flat, *node)) return true;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->IsControlEdge() && visited.insert(edge->src()).second) {
        to_visit.push_back(edge->src());
      }
    }
  }
  return false;
}

bool IsAhead(const SidesBySite& sites, const SiteNode& node) {
  const auto sides = sites.find(node.site);
  return sides != sites.end() && sides->second.ahead.count(node.node) > 0;
}

bool IsAhead(const SidesBySite& sites, const Draw& draw) {
  return IsAhead(sites, SiteNode{draw.site, draw.node});
}

// Whether anything ahead computes with one of the draws and with an element.
bool MeetElement(const FlatStep& flat, const SidesBySite& sites,
                 const std::vector<Draw>& draws) {
  std::set<const Node*> visited;
  NodesInOrder to_visit;
  for (const Draw& draw : draws) {
    to_visit.push_back(flat.Find({draw.site, draw.node}));
  }
  while (!to_visit.empty()) {
    const Node* const node = to_visit.back();
    to_visit.pop_back();
    if (!IsAhead(sites, flat.Original(*node)) || !visited.insert(node).second) {
      continue;
    }
    if (DependsOnElement(flat, *node)) return true;
    for (const Edge* edge : node->out_edges()) {
      if (!edge->IsControlEdge()) to_visit.push_back(edge->dst());
    }
  }
  return false;
}

// Returns the nodes of the flat graph from which a counter's assignment has its
// value, if these are constants, reads of the counter, and what is computed from
// them alone.
std::optional<NodesInOrder> ValueOf(const FlatStep& flat,
                                    const Draw& assignment,
                                    const std::vector<Draw>& draws) {
  std::set<const Node*> visited;
  NodesInOrder to_visit;
  const auto visit_inputs = [&](const Node* of) {
    for (const Edge* edge : of->in_edges()) {
      if (!edge->IsControlEdge() && visited.insert(edge->src()).second) {
        to_visit.push_back(edge->src());
      }
    }
  };
  visit_inputs(flat.Find({assignment.site, assignment.node}));
  NodesInOrder value;
  while (!to_visit.empty()) {
    const Node* const node = to_visit.back();
    to_visit.pop_back();
    value.push_back(node);
    const SiteNode original = flat.Original(*node);
    if (original.node == nullptr) return std::nullopt;
    if (IsCounterRead(*original.node)) {
      const bool of_counter = absl::c_any_of(draws, [&](const Draw& draw) {
        return original == SiteNode{draw.site, draw.node};
      });
      if (!of_counter) return std::nullopt;
      continue;
    }
    if (node->op_def().is_stateful() || IsElement(flat, *node)) {
      return std::nullopt;
    }
    visit_inputs(node);
  }
  return value;
}

// Whether the rest can change the state as `draw` does, one of `draws`. In a step
// that fails without an element, a conditional that chooses without one makes the
// draws of its branch, and none that the rest could take from a record.
bool CanFollow(const FlatStep& flat, const Draw& draw,
               const std::vector<Draw>& draws) {
  const Node& node = *flat.Find({draw.site, draw.node});
  if (IsCounterAssignment(*draw.node)) {
    return ValueOf(flat, draw, draws).has_value();
  }
  const Edge* choice = nullptr;
  return !(node.IsIfNode() || node.IsCaseNode()) ||
         !DependsOnElement(flat, node) ||
         (node.input_edge(0, &choice).ok() &&
          DependsOnElement(flat, *choice->src()));
}

// Whether anything but draws and `loop` uses `state`, or an identity of it.
bool HasOtherUses(const FlatStep& flat, const Node& state, const Node* loop) {
  return absl::c_any_of(state.out_edges(), [&flat, loop](const Edge* edge) {
    if (edge->IsControlEdge()) return false;
    const Node* const user = flat.Original(*edge->dst()).node;
    if (user == nullptr) return true;
    return user != loop &&
           (!user->IsIdentity() || HasOtherUses(flat, *edge->dst(), loop));
  });
}

}  // namespace

bool FindRandomStates(const CallSite& root, const Node* loop,
                      const FlatStep& flat, const SidesBySite& sites,
                      std::vector<StepInput>* inputs,
                      std::vector<RandomState>* states) {
  bool dropped = false;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const std::vector<Draw>& draws = flat.DrawsOf(i);
    if (draws.empty()) continue;
    const Node* state = flat.Find({&root, root.body->arg_nodes[i]});
    const bool can_be_ahead =
        !HasOtherUses(flat, *state, loop) &&
        absl::c_all_of(draws, [&](const Draw& draw) {
          return IsAhead(sites, draw) && CanFollow(flat, draw, draws);
        });
    if (can_be_ahead && MeetElement(flat, sites, draws)) {
      states->push_back({static_cast<int>(i), TypeOfState(draws[0])});
    } else {
      (*inputs)[i].kind = InputKind::kVariable;
      dropped = true;
    }
  }
  return dropped;
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

Status FollowInRest(const FlatStep& flat, const RandomState& state,
                    SidesBySite* sites) {
  const std::vector<Draw>& draws = flat.DrawsOf(state.input);
  for (const Draw& draw : draws) {
    SiteSides& sides = (*sites)[draw.site];
    const bool is_op = draw.algorithm == 0;
    // A step that fails without an element makes such draws all the same.
    if (!is_op && DependsOnElement(flat, *flat.Find({draw.site, draw.node}))) {
      TF_RETURN_IF_ERROR(MoveStateInRest(draw, &sides));
      continue;
    }
    sides.twice.insert(draw.node);
    if (!IsCounterAssignment(*draw.node)) continue;
    const std::optional<NodesInOrder> value = ValueOf(flat, draw, draws);
    if (!value.has_value()) continue;
    for (const Node* node : *value) {
      const SiteNode original = flat.Original(*node);
      if (IsAhead(*sites, original)) {
        (*sites)[original.site].repeated.insert(original.node);
      }
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
