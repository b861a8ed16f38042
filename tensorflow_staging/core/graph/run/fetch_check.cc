// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/fetch_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/not_carried.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

Status CheckFetches(const Graph& graph, const RunRequest& run) {
  absl::flat_hash_set<absl::string_view> nodes;
  for (const TensorId& tensor : run.fetched()) nodes.insert(tensor.node());
  for (const Node* node : graph.op_nodes()) {
    if (node->type_string() != kStagedNodeOp || !nodes.contains(node->name())) {
      continue;
    }
    std::vector<int> carried;
    std::string stage;
    TF_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kIndicesAttr, &carried));
    TF_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kStageNameAttr, &stage));
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (run.fetched().contains(TensorId(node->name(), i)) &&
          std::find(carried.begin(), carried.end(), i) == carried.end()) {
        return NotCarriedError(node->name(), i, stage);
      }
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
