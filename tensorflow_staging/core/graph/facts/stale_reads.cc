// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/stale_reads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

bool IsVariable(absl::string_view op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}

// Ops that look up rows of the variable whose handle is input 0.
bool LooksUpInHandle(absl::string_view op) {
  return op == "ResourceGather" || op == "ResourceGatherNd";
}

// Ops that look up rows of the value at input 0.
bool LooksUpInValue(absl::string_view op) {
  return op == "Gather" || op == "GatherV2" || op == "GatherNd";
}

// Ops that do not look at the elements of their inputs.
bool AsksForShape(absl::string_view op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank";
}

// Ops that read a whole variable beside training.
bool IsBesideTraining(absl::string_view op) {
  static const OpSet* const kOps = new OpSet({"Save", "SaveSlices", "SaveV2"});
  return kOps->contains(op) || absl::EndsWith(op, "Summary") ||
         absl::EndsWith(op, "SummaryV2");
}

// Returns whether `variable` is colocated with one of `variables`, another
// variable, as an optimizer's slots are.
bool IsSlot(const Node& variable, const absl::flat_hash_set<std::string>& all) {
  std::vector<std::string> colocation;
  if (!TryGetNodeAttr(variable.attrs(), kColocationAttrName, &colocation)) {
    return false;
  }
  return absl::c_any_of(colocation, [&](absl::string_view entry) {
    return absl::ConsumePrefix(&entry, kColocationGroupPrefix) &&
           entry != variable.name() && all.contains(entry);
  });
}

// Returns the nodes that tf.async_embedding_mark_node has marked, and those from
// which a tensor leads to them.
absl::flat_hash_set<const Node*> WhatLeadsToMarks(const Graph& graph,
                                                  const NodeFilter& counts) {
  std::vector<const Node*> marked;
  for (const Node* node : graph.op_nodes()) {
    if (counts(*node) && IsMarkedEmbedding(*node)) marked.push_back(node);
  }
  const std::vector<const Node*> found =
      WithAncestors(marked, [&counts](const Edge& edge) {
        return !edge.IsControlEdge() && counts(*edge.src());
      });
  return {found.begin(), found.end()};
}

}  // namespace

StaleReads::StaleReads(const Graph& graph, const NodeFilter& counts)
    : lead_to_mark_(WhatLeadsToMarks(graph, counts)),
      effects_(graph.flib_def()) {
  const Resources resources(graph, counts);
  std::vector<const Node*> all;
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_set<const Node*> marked;
  for (const Node* node : graph.op_nodes()) {
    if (!counts.CountsOp(*node) || !IsVariable(node->type_string())) continue;
    names.insert(node->name());
    const Node* owner = resources.OwnerOf(*node);
    if (owner == node) all.push_back(node);
    if (MayBeStale(*node)) marked.insert(owner);
  }
  for (const Node* variable : all) {
    Uses uses = FindUses(*variable, resources, counts);
    const bool chosen = marked.empty()
                            ? uses.only_lookups && !IsSlot(*variable, names)
                            : marked.contains(variable);
    if (uses.lookups.empty()) {
      if (marked.contains(variable)) without_lookups_.push_back(variable);
    } else if (chosen) {
      Add(*variable, resources, uses);
    } else if (uses.lead_to_mark) {
      KeepLookupsThatLeadToMark(&uses);
      Add(*variable, resources, uses);
    }
  }
}

const StaleReads::Use* StaleReads::Find(const Node& node) const {
  const auto it = uses_.find(&node);
  return it == uses_.end() ? nullptr : &it->second;
}

void StaleReads::KeepLookupsThatLeadToMark(Uses* uses) const {
  const auto others = std::stable_partition(
      uses->lookups.begin(), uses->lookups.end(),
      [this](const Node* lookup) { return lead_to_mark_.contains(lookup); });
  uses->others.insert(uses->others.end(), others, uses->lookups.end());
  uses->lookups.erase(others, uses->lookups.end());
}

void StaleReads::AddLookup(const Node& lookup, Uses* uses) {
  uses->lookups.push_back(&lookup);
  uses->lead_to_mark |= lead_to_mark_.contains(&lookup);
}

StaleReads::Uses StaleReads::FindUses(const Node& variable,
                                      const Resources& resources,
                                      const NodeFilter& counts) {
  Uses uses;
  for (const ResourceUse& use : resources.UsesOf(variable)) {
    const Node& user = *use.user;
    const Edge* edge = nullptr;
    if (use.input == ResourceUse::kByName ||
        !user.input_edge(use.input, &edge).ok()) {
      uses.others.push_back(&user);
      uses.only_lookups = false;
      continue;
    }
    const ResourceEffect effect = effects_.Find(use);
    if (effect == ResourceEffect::kNone) continue;
    const DataType given = edge->src()->output_type(edge->src_output());
    if (given == DT_RESOURCE) {
      if (use.input == 0 && LooksUpInHandle(user.type_string())) {
        AddLookup(user, &uses);
      } else if (user.type_string() == "ReadVariableOp") {
        uses.reads.push_back(&user);
        AddUsersOfValue(user, counts, &uses);
      } else {
        uses.others.push_back(&user);
        if (effect == ResourceEffect::kRead) uses.only_lookups = false;
      }
    } else if (!IsRefType(user.input_type(use.input))) {
      AddUserOfValue(*edge, counts, &uses);
    } else {
      uses.others.push_back(&user);
    }
  }
  return uses;
}

void StaleReads::AddUsersOfValue(const Node& value, const NodeFilter& counts,
                                 Uses* uses) {
  for (const Edge* edge : value.out_edges()) {
    if (!edge->IsControlEdge() && counts.CountsOp(*edge->dst())) {
      AddUserOfValue(*edge, counts, uses);
    }
  }
}

void StaleReads::AddUserOfValue(const Edge& edge, const NodeFilter& counts,
                                Uses* uses) {
  const Node& user = *edge.dst();
  const std::string& op = user.type_string();
  if (op == "Identity") {
    uses->reads.push_back(&user);
    AddUsersOfValue(user, counts, uses);
  } else if ((edge.dst_input() == 0 && LooksUpInValue(op)) ||
             (lead_to_mark_.contains(&user) && !user.op_def().is_stateful())) {
    AddLookup(user, uses);
  } else if (!AsksForShape(op)) {
    uses->others.push_back(&user);
    if (!IsBesideTraining(op)) uses->only_lookups = false;
  }
}

void StaleReads::Add(const Node& variable, const Resources& resources,
                     const Uses& uses) {
  variables_.push_back(&variable);
  for (const Node* handle : resources.HandlesOf(variable)) {
    uses_[handle] = {Part::kVariable, &variable};
  }
  for (const Node* read : uses.reads) uses_[read] = {Part::kRead, &variable};
  for (const Node* lookup : uses.lookups) {
    uses_.try_emplace(lookup, Use{Part::kLookup, &variable});
  }
  // Last: a node may use a variable in several ways, and several variables.
  for (const Node* other : uses.others)
    uses_[other] = {Part::kOther, &variable};
}

}  // namespace staging
}  // namespace tensorflow
