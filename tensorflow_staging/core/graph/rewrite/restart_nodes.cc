// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/restart_nodes.h"

#include "absl/strings/str_cat.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/rewrite/buffer_op.h"

namespace tensorflow {
namespace staging {

Status AddBegin(const std::string& stage, const Node& put,
                const std::vector<Node*>& first_nodes, Graph* graph) {
  Node* begin = nullptr;
  TF_RETURN_IF_ERROR(BufferOp(absl::StrCat(stage, "/", kBeginOp), kBeginOp, put)
                         .Finalize(graph, &begin));
  for (Node* node : first_nodes) graph->AddControlEdge(begin, node);
  return OkStatus();
}

Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart) {
  *restart = nullptr;
  if (initializers.empty()) return OkStatus();
  TF_RETURN_IF_ERROR(
      BufferOp(absl::StrCat(stage, "/", kRestartOp), kRestartOp, put)
          .Finalize(graph, restart));
  for (Node* node : initializers) graph->AddControlEdge(*restart, node);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
