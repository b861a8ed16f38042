// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/restart_nodes.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/colocation.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Adds a node <stage>/<op> that works on the buffer of `put`.
Status AddBufferOp(const std::string& stage, const char* op, const Node& put,
                   Graph* graph, Node** added) {
  NodeBuilder builder(absl::StrCat(stage, "/", op), op);
  for (const char* name :
       {kSharedNameAttr, kContainerAttr, kCapacityAttr, kCapacityBytesAttr}) {
    if (const AttrValue* value = put.attrs().Find(name)) {
      builder.Attr(name, *value);
    }
  }
  return builder.Attr(kColocationAttrName, ColocatedWith(put))
      .Device(put.requested_device())
      .Finalize(graph, added);
}

}  // namespace

Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& first_nodes,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart) {
  *restart = nullptr;
  if (initializers.empty()) return OkStatus();
  Node* begin = nullptr;
  TF_RETURN_IF_ERROR(AddBufferOp(stage, kBeginOp, put, graph, &begin));
  for (Node* node : first_nodes) graph->AddControlEdge(begin, node);
  TF_RETURN_IF_ERROR(AddBufferOp(stage, kRestartOp, put, graph, restart));
  for (Node* node : initializers) graph->AddControlEdge(*restart, node);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
