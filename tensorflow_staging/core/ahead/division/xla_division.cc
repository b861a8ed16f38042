// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/xla_division.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsInCompiledCall(const FlatStep& flat, const Node* node) {
  const SiteNode original = flat.Original(*node);
  return original.node != nullptr && original.site->is_compiled;
}

bool CanCompile(const FlatStep& flat, const Node* node) {
  return XlaCanCompile(flat.Original(*node).node->def(),
                       flat.graph().flib_def());
}

class XlaDivider {
 public:
  XlaDivider(const FlatStep& flat, const std::vector<const Node*>& region)
      : flat_(flat),
        region_(region),
        in_region_(region.begin(), region.end()),
        side_(flat.graph().num_node_ids()) {}

  XlaDivision Divide() {
    if (std::none_of(region_.begin(), region_.end(), [this](const Node* node) {
          return IsInCompiledCall(flat_, node);
        })) {
      division_.ahead = region_;
      return std::move(division_);
    }
    // What needs a value at compile time that only a record has leaves, too.
    const Node* leaves = nullptr;
    do {
      if (leaves != nullptr) must_leave_.insert(leaves);
      for (const Node* node : region_) {
        side_[node->id()] = Side::kMayBeAhead;
      }
      FindWhatMustLeave();
      KeepTheRest();
      leaves = FindCompileTimeValues();
    } while (leaves != nullptr);
    for (const Node* node : region_) {
      if (IsAhead(node)) division_.ahead.push_back(node);
    }
    return std::move(division_);
  }

 private:
  enum class Side { kRest, kMayBeAhead, kMustBeAhead };

  bool IsAhead(const Node* node) const {
    return side_[node->id()] != Side::kRest;
  }

  void FindWhatMustLeave() {
    for (auto it = region_.rbegin(); it != region_.rend(); ++it) {
      Side& side = side_[(*it)->id()];
      if (IsInCompiledCall(flat_, *it) &&
          (must_leave_.count(*it) > 0 || !CanCompile(flat_, *it))) {
        side = Side::kMustBeAhead;
      }
      if (side != Side::kMustBeAhead) continue;
      for (const Edge* edge : (*it)->in_edges()) {
        Side& before = side_[edge->src()->id()];
        if (before == Side::kMayBeAhead) before = Side::kMustBeAhead;
      }
    }
  }

  // Keeps in the rest what can stay in a compiled call, and what depends on it.
  void KeepTheRest() {
    std::set<const Node*> kept;
    for (const Node* node : region_) {
      if (side_[node->id()] == Side::kMustBeAhead) continue;
      const bool stays =
          IsInCompiledCall(flat_, node) ||
          std::any_of(node->in_edges().begin(), node->in_edges().end(),
                      [&kept](const Edge* edge) {
                        return kept.count(edge->src()) > 0;
                      });
      if (!stays) continue;
      kept.insert(node);
      side_[node->id()] = Side::kRest;
    }
  }

  // Follows what XLA needs at compile time from its users to what it is made
  // from; of a shape, only the shape is needed. Finds what is to be repeated.
  // Returns the next node that must leave, or null if all may stay, or if
  // why_not is set.
  const Node* FindCompileTimeValues() {
    division_.repeated.clear();
    // With the node that needs it.
    std::map<const Node*, const Node*> needed;
    std::vector<const Node*> to_visit;
    const auto need = [&needed, &to_visit](const Node* node, const Node* user) {
      if (node->IsOp() && needed.emplace(node, user).second) {
        to_visit.push_back(node);
      }
    };
    for (const Node* node : flat_.graph().op_nodes()) {
      if (!IsInCompiledCall(flat_, node) || IsAhead(node)) continue;
      std::vector<int> inputs;
      if (!XlaOpRegistry::CompileTimeConstantInputs(node->def(), node->op_def(),
                                                    &inputs)
               .ok()) {
        continue;
      }
      for (const int input : inputs) {
        const Edge* edge = nullptr;
        if (node->input_edge(input, &edge).ok()) need(edge->src(), node);
      }
    }
    while (!to_visit.empty()) {
      const Node* node = to_visit.back();
      to_visit.pop_back();
      const Node* user = needed[node];
      // What comes from outside the call does so without a stage as well.
      if (!IsInCompiledCall(flat_, node)) continue;
      if (IsAhead(node)) {
        if (node->op_def().is_stateful() || !CanCompile(flat_, node)) {
          if (in_region_.count(user) > 0) return user;
          division_.why_not = absl::StrCat(
              "XLA needs the value of '", node->name(), "' (",
              node->type_string(), ") when it compiles '", user->name(), "' (",
              user->type_string(), "), and cannot compute it");
          return nullptr;
        }
        division_.repeated.insert(node);
      }
      if (XlaOpRegistry::IsMetadataOp(node->type_string())) continue;
      for (const Edge* edge : node->in_edges()) {
        if (!edge->IsControlEdge()) need(edge->src(), user);
      }
    }
    return nullptr;
  }

  const FlatStep& flat_;
  const std::vector<const Node*>& region_;
  const std::set<const Node*> in_region_;
  std::vector<Side> side_;  // By node id.
  std::set<const Node*> must_leave_;
  XlaDivision division_;
};

}  // namespace

XlaDivision DivideXlaCalls(const FlatStep& flat,
                           const std::vector<const Node*>& region) {
  return XlaDivider(flat, region).Divide();
}

}  // namespace staging
}  // namespace tensorflow
