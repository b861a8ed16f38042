// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_restart.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

// Container and shared name of a buffer.
using BufferKey = std::pair<std::string, std::string>;

bool KeyOf(const Node& node, BufferKey* key) {
  return TryGetNodeAttr(node.attrs(), "container", &key->first) &&
         TryGetNodeAttr(node.attrs(), "shared_name", &key->second);
}

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

Status CheckRestartIsARunOfItsOwn(const Graph& graph) {
  std::set<BufferKey> restarted;
  for (const Node* node : graph.op_nodes()) {
    BufferKey key;
    if (node->type_string() == "TensorBufferRestart" && KeyOf(*node, &key)) {
      restarted.insert(key);
    }
  }
  if (restarted.empty()) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    BufferKey key;
    if ((IsBufferTake(*node) || node->type_string() == "TensorBufferBegin") &&
        KeyOf(*node, &key) && restarted.count(key) > 0) {
      return errors::InvalidArgument(
          "The run initialises an iterator of stage '", key.second,
          "' and needs its records, by '", node->name(),
          "'. The stage starts anew when the run has ended, so that the run "
          "would wait for itself. Initialise the iterator in a run of its "
          "own.");
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
