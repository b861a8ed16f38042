// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/kept_devices.h"

#include <string>

#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow {
namespace staging {

bool KeepsDevice(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    // Handles have no inputs, and most nodes have some.
    if (node->num_inputs() != 0 || (node->type_string() != "IteratorV2" &&
                                    node->type_string() != "Iterator")) {
      continue;
    }
    std::string name;
    if (!TryGetNodeAttr(node->attrs(), "shared_name", &name) || !name.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace staging
}  // namespace tensorflow
