// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/called_functions.h"

#include <set>
#include <utility>

namespace tensorflow {
namespace staging {

std::vector<NameAttrList> FunctionAttrs(const NodeDef& node) {
  std::vector<NameAttrList> found;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) found.push_back(value.func());
    found.insert(found.end(), value.list().func().begin(),
                 value.list().func().end());
  }
  return found;
}

std::vector<std::string> CalledFunctions(
    const NodeDef& node, const FunctionLibraryDefinition& functions) {
  std::vector<std::string> names;
  if (functions.Contains(node.op())) names.push_back(node.op());
  for (const NameAttrList& function : FunctionAttrs(node)) {
    names.push_back(function.name());
  }
  return names;
}

bool AnyNodeOfFunctions(std::vector<std::string> names,
                        const FunctionLibraryDefinition& functions,
                        absl::FunctionRef<bool(const NodeDef&)> accepts) {
  std::set<std::string> seen(names.begin(), names.end());
  names.assign(seen.begin(), seen.end());
  while (!names.empty()) {
    const FunctionDef* const function = functions.Find(names.back());
    names.pop_back();
    if (function == nullptr) continue;
    for (const NodeDef& node : function->node_def()) {
      if (accepts(node)) return true;
      for (std::string& called : CalledFunctions(node, functions)) {
        if (seen.insert(called).second) names.push_back(std::move(called));
      }
    }
  }
  return false;
}

}  // namespace staging
}  // namespace tensorflow
