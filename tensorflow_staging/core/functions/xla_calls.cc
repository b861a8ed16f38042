// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/functions/xla_calls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace staging {
namespace {

// Functions that are nested deeper count as compilable.
constexpr int kDeepest = 16;

bool IsInCompiledCall(const FlatStep& flat, const Node* node) {
  const SiteNode original = flat.Original(*node);
  return original.node != nullptr && original.site->is_compiled;
}

// Whether XLA has kernels for a node, and for those of the functions that it
// calls. XLA compiles for the CPU and for GPUs alike.
bool CanCompile(const NodeDef& node, const FunctionLibraryDefinition& library,
                int depth) {
  if (library.Find(node.op()) == nullptr &&
      !FindKernelDef(DeviceType(DEVICE_CPU_XLA_JIT), node, /*def=*/nullptr,
                     /*kernel_class_name=*/nullptr)
           .ok()) {
    return false;
  }
  if (depth == 0) return true;
  const auto can_compile = [&library, depth](const NameAttrList& called) {
    const FunctionDef* callee = library.Find(called.name());
    return callee == nullptr ||
           std::all_of(callee->node_def().begin(), callee->node_def().end(),
                       [&library, depth](const NodeDef& inner) {
                         return CanCompile(inner, library, depth - 1);
                       });
  };
  for (const auto& [name, attr] : node.attr()) {
    if (attr.has_func() && !can_compile(attr.func())) return false;
    for (const NameAttrList& called : attr.list().func()) {
      if (!can_compile(called)) return false;
    }
  }
  return true;
}

bool CanCompile(const FlatStep& flat, const Node* node) {
  return CanCompile(flat.Original(*node).node->def(), flat.graph().flib_def(),
                    kDeepest);
}

class XlaDivider {
 public:
  XlaDivider(const FlatStep& flat, const std::vector<const Node*>& region)
      : flat_(flat), region_(region), side_(flat.graph().num_node_ids()) {}

  XlaDivision Divide() {
    for (const Node* node : region_) {
      division_.has_compiled_calls |= IsInCompiledCall(flat_, node);
    }
    if (!division_.has_compiled_calls) {
      division_.ahead = region_;
      return std::move(division_);
    }
    XlaOpRegistry::RegisterCompilationKernels();
    for (const Node* node : region_) side_[node->id()] = Side::kMayBeAhead;
    FindWhatMustLeave();
    KeepTheRest();
    for (const Node* node : region_) {
      if (IsAhead(node)) division_.ahead.push_back(node);
    }
    FindCompileTimeValues();
    return std::move(division_);
  }

 private:
  enum class Side { kStep, kMayBeAhead, kMustBeAhead };

  bool IsAhead(const Node* node) const {
    return side_[node->id()] != Side::kStep;
  }

  void FindWhatMustLeave() {
    for (auto it = region_.rbegin(); it != region_.rend(); ++it) {
      Side& side = side_[(*it)->id()];
      if (IsInCompiledCall(flat_, *it) && !CanCompile(flat_, *it)) {
        side = Side::kMustBeAhead;
      }
      if (side != Side::kMustBeAhead) continue;
      for (const Edge* edge : (*it)->in_edges()) {
        Side& before = side_[edge->src()->id()];
        if (before == Side::kMayBeAhead) before = Side::kMustBeAhead;
      }
    }
  }

  // Keeps in the step what can stay in a compiled call, and what depends on it.
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
      side_[node->id()] = Side::kStep;
    }
  }

  // Follows what XLA needs at compile time from its users to what it is made
  // from. Of a shape, only the shape is needed.
  void FindCompileTimeValues() {
    std::set<const Node*> needed;
    std::vector<const Node*> to_visit;
    const auto need = [&needed, &to_visit](const Node* node) {
      if (node->IsOp() && needed.insert(node).second) to_visit.push_back(node);
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
        if (node->input_edge(input, &edge).ok()) need(edge->src());
      }
    }
    while (!to_visit.empty()) {
      const Node* node = to_visit.back();
      to_visit.pop_back();
      // What comes from outside the call does so without a stage as well.
      if (!IsInCompiledCall(flat_, node)) continue;
      if (IsAhead(node)) {
        if (node->op_def().is_stateful() || !CanCompile(flat_, node)) {
          division_.why_not = absl::StrCat(
              "XLA needs the value of '", node->name(), "' (",
              node->type_string(),
              ") when it compiles the step, and cannot compute it");
          return;
        }
        division_.repeated.insert(node);
      }
      if (XlaOpRegistry::IsMetadataOp(node->type_string())) continue;
      for (const Edge* edge : node->in_edges()) {
        if (!edge->IsControlEdge()) need(edge->src());
      }
    }
  }

  const FlatStep& flat_;
  const std::vector<const Node*>& region_;
  std::vector<Side> side_;  // By node id.
  XlaDivision division_;
};

}  // namespace

XlaDivision DivideXlaCalls(const FlatStep& flat,
                           const std::vector<const Node*>& region) {
  return XlaDivider(flat, region).Divide();
}

}  // namespace staging
}  // namespace tensorflow
