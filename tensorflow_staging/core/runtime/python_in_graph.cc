// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/python_in_graph.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow_staging/core/graph/facts/function_names.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

bool IsPython(absl::string_view op) {
  return op == "PyFunc" || op == "PyFuncStateless" || op == "EagerPyFunc";
}

// The ops that yield an iterator, except OneShotIterator, which names the
// function that creates its dataset.
bool IsIteratorOfOtherRun(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"Iterator", "IteratorFromStringHandle",
                 "IteratorFromStringHandleV2", "IteratorV2",
                 "MultiDeviceIterator", "MultiDeviceIteratorFromStringHandle"});
  return kOps->contains(op);
}

// Searches nodes, and then the functions that they call.
class Search {
 public:
  explicit Search(const FunctionLibraryDefinition& functions)
      : functions_(functions) {}

  // Returns whether `node` itself is Python.
  bool Visit(const NodeDef& node) {
    if (IsPython(node.op())) return true;
    for (std::string& name : IsIteratorOfOtherRun(node.op())
                                 ? functions_.ListFunctionNames()
                                 : CalledFunctions(node, functions_)) {
      if (seen_.insert(name).second) calls_.push_back(std::move(name));
    }
    return false;
  }

  bool VisitCalls() {
    while (!calls_.empty()) {
      const FunctionDef* const function = functions_.Find(calls_.back());
      calls_.pop_back();
      if (function == nullptr) continue;
      for (const NodeDef& node : function->node_def()) {
        if (Visit(node)) return true;
      }
    }
    return false;
  }

 private:
  const FunctionLibraryDefinition& functions_;
  std::set<std::string> seen_;
  // The functions among seen_ that are still to be searched.
  std::vector<std::string> calls_;
};

}  // namespace

bool MayCallPython(const Graph& graph,
                   const FunctionLibraryDefinition& functions) {
  Search search(functions);
  for (const Node* node : graph.op_nodes()) {
    if (search.Visit(node->def())) return true;
  }
  return search.VisitCalls();
}

bool UsesIteratorOfOtherRun(const Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    return IsIteratorOfOtherRun(node->type_string());
  });
}

}  // namespace staging
}  // namespace tensorflow
