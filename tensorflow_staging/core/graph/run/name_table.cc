// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/name_table.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Finds the outputs that `stand_in` passes on. A stand-in that is no StagedNode
// is a node with one output, which it passes on, or with none.
Status FindCarried(const Node& stand_in, std::vector<bool>* carried) {
  std::vector<int> outputs;
  TF_RETURN_IF_ERROR(OutputsOfInputs(stand_in, &outputs));
  carried->assign(stand_in.num_outputs(), false);
  for (int output : outputs) (*carried)[output] = true;
  return OkStatus();
}

// By scope of the clones, with a slash at its end: the stage.
using Scopes = std::map<std::string, std::string>;

// Adds those of `unmarked`, the nodes that are neither clones nor stand-ins,
// that have a name in a scope of clones.
void AddLoweredNodes(const Graph& graph, const std::vector<Node*>& unmarked,
                     const Scopes& scopes, NameTable* nodes) {
  std::vector<std::pair<Node*, const Scopes::value_type*>> found;
  for (Node* node : unmarked) {
    absl::string_view name = node->name();
    // The inputs and outputs of an inlined function.
    absl::ConsumePrefix(&name, "Func/");
    for (const auto& scope : scopes) {
      if (absl::StartsWith(name, scope.first) && !CopiedNode(*node)) {
        found.emplace_back(node, &scope);
      }
    }
  }
  if (found.empty()) return;
  absl::flat_hash_set<absl::string_view> names;
  for (const Node* node : graph.op_nodes()) names.insert(node->name());
  for (const auto& [node, scope] : found) {
    absl::string_view original = node->name();
    std::string name(original);
    if (absl::ConsumePrefix(&original, scope->first) &&
        (!names.contains(original) || nodes->stand_ins.contains(original)) &&
        !nodes->clones.contains(original)) {
      name = std::string(original);
    }
    nodes->lowered.emplace(node, name);
    nodes->clones.emplace(
        name,
        MarkedClone{node, CloneMark{scope->second, name, {}, std::nullopt}});
  }
}

}  // namespace

std::optional<std::string> NameTable::OriginalOf(const Node& node) const {
  const auto it = lowered.find(&node);
  if (it != lowered.end()) return it->second;
  std::string original;
  if (!TryGetNodeAttr(node.attrs(), kOriginalAttr, &original)) {
    return std::nullopt;
  }
  return original;
}

const MarkedClone* NameTable::FindClone(absl::string_view original) const {
  const auto it = clones.find(original);
  return it == clones.end() ? nullptr : &it->second;
}

const MarkedClone* NameTable::FindPass(absl::string_view original) const {
  const auto it = passes.find(original);
  return it == passes.end() ? nullptr : &it->second;
}

const MarkedStandIn* NameTable::FindStandIn(absl::string_view original) const {
  const auto it = stand_ins.find(original);
  return it == stand_ins.end() ? nullptr : &it->second;
}

const std::string* NameTable::FindTakeStandIn(const std::string& stage) const {
  const auto it = take_stand_ins.find(stage);
  return it == take_stand_ins.end() ? nullptr : &it->second;
}

bool NameTable::IsCarried(absl::string_view original, int output) const {
  const MarkedStandIn* stand_in = FindStandIn(original);
  return stand_in != nullptr && output >= 0 &&
         output < static_cast<int>(stand_in->carried.size()) &&
         stand_in->carried[output];
}

Status ReadMarks(const Graph& graph, NameTable* nodes) {
  *nodes = NameTable();
  Scopes scopes;
  std::vector<Node*> unmarked;
  for (Node* node : graph.op_nodes()) {
    if (IsClone(*node)) {
      std::optional<CloneMark> mark;
      TF_RETURN_IF_ERROR(ReadCloneMark(*node, &mark));
      const std::string original = mark->original;
      absl::string_view scope = node->name();
      if (absl::ConsumeSuffix(&scope, original)) {
        scopes.try_emplace(std::string(scope), mark->stage);
      }
      if (mark->passes_on) {
        // A manual stage may have both its own clone and a pass of it.
        if (*mark->passes_on != mark->stage) {
          nodes->passes.emplace(original, MarkedClone{node, *std::move(mark)});
        }
        continue;
      }
      nodes->clones.emplace(original, MarkedClone{node, *std::move(mark)});
    } else if (IsStandIn(*node)) {
      std::optional<std::string> stage;
      TF_RETURN_IF_ERROR(ReadStandInMark(*node, &stage));
      std::vector<bool> carried;
      TF_RETURN_IF_ERROR(FindCarried(*node, &carried));
      nodes->stand_ins.emplace(
          node->name(),
          MarkedStandIn{node, *std::move(stage), std::move(carried)});
    } else {
      unmarked.push_back(node);
    }
  }
  AddLoweredNodes(graph, unmarked, scopes, nodes);
  for (const auto& [name, stand_in] : nodes->stand_ins) {
    // A Take has no clone: the clones use the inputs of the Put.
    if (nodes->FindClone(name) == nullptr) {
      const MarkedClone* pass = nodes->FindPass(name);
      nodes->take_stand_ins.emplace(
          pass == nullptr ? stand_in.stage : *pass->mark.passes_on, name);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
