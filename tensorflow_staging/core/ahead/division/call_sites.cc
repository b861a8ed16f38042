// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/call_sites.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

// Deeper calls are left as they are.
constexpr int kDeepest = 32;

// Removes the nodes that lead to no output and to no control output, as the
// runtime does before it runs the function.
void Prune(const FunctionBody& body) {
  std::unordered_set<const Node*> kept;
  for (const Node* node : body.ret_nodes) kept.insert(node);
  for (const Node* node : body.control_ret_nodes) kept.insert(node);
  for (const Node* node : body.arg_nodes) kept.insert(node);
  // A function without control outputs runs whatever has an effect.
  if (body.control_ret_nodes.empty()) {
    for (const Node* node : body.graph->op_nodes()) {
      if (node->op_def().is_stateful()) kept.insert(node);
    }
  }
  PruneForReverseReachability(body.graph, std::move(kept));
}

bool IsCompiled(AttrSlice attrs) {
  bool compiled = false;
  return TryGetNodeAttr(attrs, "_XlaMustCompile", &compiled) && compiled;
}

// Returns the function that `node` calls and that can be a site, or null.
const FunctionDef* CalleeOf(const Node& node,
                            const FunctionLibraryDefinition& library) {
  if (node.type_string() != "PartitionedCall" &&
      node.type_string() != "StatefulPartitionedCall") {
    return nullptr;
  }
  NameAttrList called;
  if (!GetNodeAttr(node.attrs(), "f", &called).ok()) return nullptr;
  const FunctionDef* callee = library.Find(called.name());
  if (callee == nullptr || called.attr_size() > 0 ||
      callee->signature().input_arg_size() != node.num_inputs() ||
      callee->signature().output_arg_size() != node.num_outputs()) {
    return nullptr;
  }
  return callee;
}

Status Find(const FunctionDef& function,
            const FunctionLibraryDefinition& library,
            std::vector<std::string>* callers, CallSite* site) {
  TF_RETURN_IF_ERROR(FunctionDefToBodyHelper(
      function, AttrSlice(&function.attr()), &library, &site->body));
  Prune(*site->body);
  if (callers->size() >= kDeepest) return OkStatus();
  callers->push_back(function.signature().name());
  for (Node* node : site->graph()->op_nodes()) {
    const FunctionDef* callee = CalleeOf(*node, library);
    if (callee == nullptr) continue;
    if (absl::c_linear_search(*callers, callee->signature().name())) continue;
    auto called = std::make_unique<CallSite>();
    called->caller = site;
    called->call = node;
    called->is_compiled = site->is_compiled || IsCompiled(node->attrs()) ||
                          IsCompiled(AttrSlice(&callee->attr()));
    TF_RETURN_IF_ERROR(Find(*callee, library, callers, called.get()));
    site->calls.emplace(node->id(), std::move(called));
  }
  callers->pop_back();
  return OkStatus();
}

}  // namespace

CallSite* CallSite::SiteOf(const Node& node) const {
  const auto found = calls.find(node.id());
  return found == calls.end() ? nullptr : found->second.get();
}

bool XlaCanCompile(const NodeDef& node,
                   const FunctionLibraryDefinition& library) {
  XlaOpRegistry::RegisterCompilationKernels();  // Once a process.
  const auto has_no_kernel = [&library](const NodeDef& def) {
    return library.Find(def.op()) == nullptr &&
           !FindKernelDef(DeviceType(DEVICE_CPU_XLA_JIT), def, /*def=*/nullptr,
                          /*kernel_class_name=*/nullptr)
                .ok();
  };
  return !has_no_kernel(node) &&
         !AnyNodeOfFunctions(CalledFunctions(node, library), library,
                             has_no_kernel);
}

int IndexOf(const Node& arg) {
  int index = -1;
  TryGetNodeAttr(arg.attrs(), "index", &index);
  return index;
}

const Node* BehindIdentities(const Edge* edge) {
  while (edge->src()->type_string() == "Identity") {
    if (!edge->src()->input_edge(0, &edge).ok()) break;
  }
  return edge->src();
}

Status FindCallSites(const FunctionDef& step,
                     const FunctionLibraryDefinition& library,
                     std::unique_ptr<CallSite>* root) {
  *root = std::make_unique<CallSite>();
  std::vector<std::string> callers;
  return Find(step, library, &callers, root->get());
}

}  // namespace staging
}  // namespace tensorflow
