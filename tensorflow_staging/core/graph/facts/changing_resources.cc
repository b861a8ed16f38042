// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/changing_resources.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/graph_walk.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsRestoreOp(const Node& node) {
  return absl::StartsWith(node.type_string(), "Restore");
}

bool IsAssign(const Node& node) {
  return node.type_string() == "Assign" ||
         node.type_string() == "AssignVariableOp";
}

bool IsVariable(const Node& node) {
  return node.type_string() == "VarHandleOp" ||
         node.type_string() == "Variable" || node.type_string() == "VariableV2";
}

// Returns whether nothing uses `node`, and only groups wait for it.
bool OnlyGroupsWaitFor(const Node& node, const NodeFilter& counts) {
  const auto is_group = [](const Node* user) {
    return user->type_string() == "NoOp";
  };
  const std::vector<const Node*> users =
      WithDescendants({&node}, [&](const Edge& edge) {
        return counts(*edge.dst()) &&
               (edge.src() == &node || is_group(edge.src()));
      });
  return std::all_of(users.begin() + 1, users.end(), is_group);
}

}  // namespace

ChangingResources::ChangingResources(const Graph& graph,
                                     const Resources& resources,
                                     const NodeFilter& counts)
    : resources_(resources),
      counts_(counts),
      effects_(graph.flib_def()),
      roles_(graph, counts) {}

const std::vector<const Node*>& ChangingResources::ChangersOf(
    const Node& owner) {
  // A variable whose initial value depends on itself counts as changing.
  const auto [it, inserted] =
      changers_.try_emplace(&owner, std::vector<const Node*>{&owner});
  if (!inserted) return it->second;
  std::vector<const Node*> changers;
  std::vector<const Node*> assigns;
  for (const ResourceUse& use : resources_.UsesOf(owner)) {
    const ResourceEffect effect = effects_.Find(use);
    if (effect == ResourceEffect::kWrite) {
      changers.push_back(use.user);
    } else if (effect == ResourceEffect::kAssign &&
               !IsRestore(*use.user, owner)) {
      assigns.push_back(use.user);
    }
  }
  if (assigns.size() != 1 || !IsInitializer(*assigns.front(), owner)) {
    changers.insert(changers.end(), assigns.begin(), assigns.end());
  }
  return it->second = std::move(changers);
}

const Node* ChangingResources::InitializerOf(const Node& owner) {
  const Node* found = nullptr;
  for (const ResourceUse& use : resources_.UsesOf(owner)) {
    if (effects_.Find(use) != ResourceEffect::kAssign ||
        !IsInitializer(*use.user, owner)) {
      continue;
    }
    if (found != nullptr) return nullptr;
    found = use.user;
  }
  return found;
}

std::vector<const Node*> ChangingResources::UsersOf(const Node& owner) {
  std::vector<const Node*> users = ChangersOf(owner);
  for (const ResourceUse& use : resources_.UsesOf(owner)) {
    if (effects_.Find(use) == ResourceEffect::kRead) users.push_back(use.user);
  }
  return users;
}

bool ChangingResources::IsRestore(const Node& assign, const Node& owner) {
  return OriginOfValue(assign, owner) == Origin::kCheckpoint;
}

bool ChangingResources::IsInitializer(const Node& assign, const Node& owner) {
  return IsAssign(assign) &&
         OriginOfValue(assign, owner) == Origin::kBeforeTraining &&
         OnlyGroupsWaitFor(assign, counts_);
}

ChangingResources::Origin ChangingResources::OriginOfValue(const Node& assign,
                                                           const Node& owner) {
  Origin origin = Origin::kBeforeTraining;
  std::vector<const Node*> found = {&assign};
  absl::flat_hash_set<const Node*> seen;
  while (!found.empty()) {
    const Node* node = found.back();
    found.pop_back();
    for (const Edge* edge : node->in_edges()) {
      const Node* input = edge->src();
      // The first input is the resource that gets the value.
      const bool is_target = node == &assign && edge->dst_input() == 0;
      if (is_target || !input->IsOp() || !seen.insert(input).second) continue;
      if (IsRestoreOp(*input)) {
        // How a program names its checkpoint does not matter.
        origin = Origin::kCheckpoint;
        continue;
      }
      if (!MayPrecedeTraining(*input, owner)) return Origin::kUnknown;
      found.push_back(input);
    }
  }
  return origin;
}

// Returns whether `node` may be part of the computation of an initial value of
// the resource of `owner`.
bool ChangingResources::MayPrecedeTraining(const Node& node,
                                           const Node& owner) {
  if (IsVariable(node)) {
    const Node* read = resources_.OwnerOf(node);
    return read != &owner && ChangersOf(*read).empty();
  }
  const RoleAndReason found = roles_.Find(node);
  switch (found.role) {
    case NodeRole::kPure:
    case NodeRole::kOncePerRecord:
    case NodeRole::kHandle:
      return true;
    case NodeRole::kSource:
      return false;
    case NodeRole::kStepOnly:
      break;
  }
  if (found.reason == StepReason::kControlFlow) return true;
  return found.reason == StepReason::kSideEffect && effects_.OnlyReads(node);
}

}  // namespace staging
}  // namespace tensorflow
