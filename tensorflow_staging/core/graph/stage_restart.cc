// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/stage_restart.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace staging {
namespace {

// Makes an op of the buffer that `put` fills.
Status MakeBufferOp(const std::string& stage, const char* op, const Node& put,
                    Graph* graph, Node** made) {
  NodeBuilder builder(absl::StrCat(stage, "/", op), op);
  for (const char* name :
       {"shared_name", "container", "capacity", "capacity_bytes"}) {
    if (const AttrValue* value = put.attrs().Find(name)) {
      builder.Attr(name, *value);
    }
  }
  return builder
      .Attr("_class",
            std::vector<std::string>{absl::StrCat("loc:@", put.name())})
      .Device(put.requested_device())
      .Finalize(graph, made);
}

}  // namespace

Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& first_nodes,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart) {
  *restart = nullptr;
  if (initializers.empty()) return OkStatus();
  Node* begin = nullptr;
  TF_RETURN_IF_ERROR(
      MakeBufferOp(stage, "TensorBufferBegin", put, graph, &begin));
  for (Node* node : first_nodes) graph->AddControlEdge(begin, node);
  TF_RETURN_IF_ERROR(
      MakeBufferOp(stage, "TensorBufferRestart", put, graph, restart));
  for (Node* node : initializers) graph->AddControlEdge(*restart, node);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
