// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/resource_effects.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

using Effects = absl::flat_hash_map<absl::string_view, ResourceEffect>;

// The effects of the ops that call no function. All others may write.
const Effects& EffectsOfOps() {
  static const Effects* const kEffects = new Effects({
      {"DisableCopyOnRead", ResourceEffect::kNone},
      {"IsVariableInitialized", ResourceEffect::kNone},
      {"VarIsInitializedOp", ResourceEffect::kNone},
      {"VariableShape", ResourceEffect::kNone},
      {"ReadVariableOp", ResourceEffect::kRead},
      {"ResourceGather", ResourceEffect::kRead},
      {"ResourceGatherNd", ResourceEffect::kRead},
      {"InitializeTable", ResourceEffect::kInitialize},
      {"InitializeTableFromTextFile", ResourceEffect::kInitialize},
      {"InitializeTableFromTextFileV2", ResourceEffect::kInitialize},
      {"InitializeTableV2", ResourceEffect::kInitialize},
      {"Assign", ResourceEffect::kAssign},
      {"AssignVariableOp", ResourceEffect::kAssign},
      {"LookupTableImport", ResourceEffect::kAssign},
      {"LookupTableImportV2", ResourceEffect::kAssign},
  });
  return *kEffects;
}

bool IsLoop(absl::string_view op) {
  return op == "While" || op == "StatelessWhile";
}

// Returns how many inputs of `op` precede the arguments of the functions that
// it calls, or -1 if the inputs are not the arguments, in order.
int InputsBeforeArguments(absl::string_view op) {
  if (op == "PartitionedCall" || op == "StatefulPartitionedCall" ||
      IsLoop(op)) {
    return 0;
  }
  if (op == "If" || op == "StatelessIf" || op == "Case" ||
      op == "StatelessCase") {
    return 1;
  }
  return -1;
}

bool IsUsed(const Node& node, int output) {
  return absl::c_any_of(node.out_edges(), [output](const Edge* edge) {
    return !edge->IsControlEdge() && edge->src_output() == output;
  });
}

}  // namespace

bool IsFixedTable(absl::string_view op) {
  return op == "HashTable" || op == "HashTableV2";
}

bool IsTableRead(absl::string_view op) {
  static const auto* const kOps = new absl::flat_hash_set<absl::string_view>(
      {"LookupTableExport", "LookupTableExportV2", "LookupTableFind",
       "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
       // TensorFlow Text's.
       "WordpieceTokenizeWithOffsets"});
  return kOps->contains(op);
}

ResourceEffect ResourceEffects::Find(const ResourceUse& use) {
  // A function that names a resource may do anything with it.
  if (use.input == ResourceUse::kByName) return ResourceEffect::kWrite;
  const Node& user = *use.user;
  if (IsHandlePassThrough(user) && user.type_string() != "Identity") {
    return ResourceEffect::kNone;
  }
  const Edge* edge = nullptr;
  if (!user.input_edge(use.input, &edge).ok()) return ResourceEffect::kWrite;
  const bool by_reference = IsRefType(user.input_type(use.input));
  if (edge->src()->output_type(edge->src_output()) == DT_RESOURCE) {
    if (user.type_string() == "Identity") return ResourceEffect::kNone;
  } else if (!by_reference) {
    // Copies the value of the variable.
    return ResourceEffect::kRead;
  }
  if (IsTableRead(user.type_string())) return ResourceEffect::kRead;
  const auto it = EffectsOfOps().find(user.type_string());
  if (it == EffectsOfOps().end()) return FindInFunctions(use);
  const Node* handle = Resources::HandleOfInput(user, use.input);
  if (it->second == ResourceEffect::kAssign && handle != nullptr &&
      IsFixedTable(handle->type_string())) {
    return ResourceEffect::kInitialize;
  }
  return it->second;
}

bool ResourceEffects::OnlyReads(const Node& node) {
  if (!CalledFunctions(node.def(), functions_).empty()) return false;
  bool reads = false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i) != DT_RESOURCE) continue;
    if (Find({&node, i}) > ResourceEffect::kRead) return false;
    reads = true;
  }
  return reads;
}

ResourceEffect ResourceEffects::FindInFunctions(const ResourceUse& use) {
  const Node& user = *use.user;
  const std::string& op = user.type_string();
  if (functions_.Contains(op)) {
    NameAttrList function;
    function.set_name(op);
    *function.mutable_attr() = user.def().attr();
    return OfArgument(function, use.input, /*is_loop=*/false);
  }
  const std::vector<NameAttrList> functions = FunctionAttrs(user.def());
  if (functions.empty() || op == "SymbolicGradient") {
    return ResourceEffect::kWrite;
  }
  const int before = InputsBeforeArguments(op);
  // The users of what a loop returns are not known as users of the resource.
  if (IsLoop(op) && IsUsed(user, use.input)) return ResourceEffect::kWrite;
  ResourceEffect worst = ResourceEffect::kNone;
  for (const NameAttrList& function : functions) {
    worst = std::max(
        worst, before < 0
                   ? WorstOfArguments(function)
                   : OfArgument(function, use.input - before, IsLoop(op)));
  }
  return worst;
}

ResourceEffect ResourceEffects::OfArgument(const NameAttrList& function,
                                           int argument, bool is_loop) {
  const OfFunction& found = Examine(function);
  if (!found.known || argument < 0 ||
      argument >= static_cast<int>(found.effects.size()) ||
      (is_loop ? found.moved[argument] : found.returned[argument])) {
    return ResourceEffect::kWrite;
  }
  return found.effects[argument];
}

// For ops such as datasets, which divide their inputs among the arguments of
// several functions.
ResourceEffect ResourceEffects::WorstOfArguments(const NameAttrList& function) {
  const OfFunction& found = Examine(function);
  if (!found.known) return ResourceEffect::kWrite;
  ResourceEffect worst = ResourceEffect::kNone;
  for (size_t i = 0; i < found.effects.size(); ++i) {
    worst = std::max(
        worst, found.returned[i] ? ResourceEffect::kWrite : found.effects[i]);
  }
  return worst;
}

const ResourceEffects::OfFunction& ResourceEffects::Examine(
    const NameAttrList& function) {
  const auto [it, inserted] = examined_.try_emplace(
      Canonicalize(function.name(), AttrSlice(&function.attr())));
  if (!inserted) return it->second;
  const FunctionDef* definition = functions_.Find(function.name());
  std::unique_ptr<FunctionBody> body;
  if (definition != nullptr &&
      FunctionDefToBodyHelper(*definition, AttrSlice(&function.attr()),
                              &functions_, &body)
          .ok()) {
    it->second = ExamineBody(*body->graph, body->arg_nodes.size());
  }
  return it->second;
}

ResourceEffects::OfFunction ResourceEffects::ExamineBody(const Graph& body,
                                                         int num_arguments) {
  OfFunction found;
  found.known = true;
  found.effects.assign(num_arguments, ResourceEffect::kNone);
  found.returned.assign(num_arguments, false);
  found.moved.assign(num_arguments, false);
  const Resources resources(body);
  for (const Node* node : body.op_nodes()) {
    int argument = 0;
    if (!node->IsArg() || !TryGetNodeAttr(node->attrs(), "index", &argument) ||
        argument < 0 || argument >= num_arguments) {
      continue;
    }
    for (const ResourceUse& use : resources.UsesOf(*node)) {
      if (use.user->IsRetval()) {
        int result = -1;
        TryGetNodeAttr(use.user->attrs(), "index", &result);
        found.returned[argument] = true;
        if (result != argument) found.moved[argument] = true;
      } else {
        found.effects[argument] = std::max(found.effects[argument], Find(use));
      }
    }
  }
  return found;
}

}  // namespace staging
}  // namespace tensorflow
