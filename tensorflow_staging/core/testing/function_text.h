// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FUNCTION_TEXT_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FUNCTION_TEXT_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace staging {

// Returns "name = op(inputs)" for each node of a function, sorted.
inline std::vector<std::string> NodesOf(const FunctionDef& function) {
  std::vector<std::string> nodes;
  for (const NodeDef& node : function.node_def()) {
    std::string text = node.name() + " = " + node.op() + "(";
    for (const std::string& input : node.input()) text += input + ",";
    nodes.push_back(text + ")");
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FUNCTION_TEXT_H_
