// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/called_functions.h"

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

}  // namespace staging
}  // namespace tensorflow
