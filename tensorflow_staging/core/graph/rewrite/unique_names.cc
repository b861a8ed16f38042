// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/unique_names.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

Status CheckNamesAreUnique(const Graph& graph) {
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(graph.num_op_nodes());
  for (const Node* node : graph.op_nodes()) {
    if (names.insert(node->name()).second) continue;
    return errors::AlreadyExists(
        "Node '", node->name(),
        "' has the name of a node that SmartStage creates for a stage of this "
        "session. Nodes that are added after the stages began to run need "
        "other names: use another name scope for them, or set another name in "
        "tf.SmartStageOptions.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
