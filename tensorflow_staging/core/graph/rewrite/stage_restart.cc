// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_restart.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Makes an op of the buffer that `put` fills.
Status MakeBufferOp(const std::string& stage, const char* op, const Node& put,
                    Graph* graph, Node** made) {
  NodeBuilder builder(absl::StrCat(stage, "/", op), op);
  for (const char* name :
       {kSharedNameAttr, kContainerAttr, kCapacityAttr, kCapacityBytesAttr}) {
    if (const AttrValue* value = put.attrs().Find(name)) {
      builder.Attr(name, *value);
    }
  }
  return builder
      .Attr(kColocationAttrName, std::vector<std::string>{absl::StrCat(
                                     kColocationGroupPrefix, put.name())})
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
  TF_RETURN_IF_ERROR(MakeBufferOp(stage, kBeginOp, put, graph, &begin));
  for (Node* node : first_nodes) graph->AddControlEdge(begin, node);
  TF_RETURN_IF_ERROR(MakeBufferOp(stage, kRestartOp, put, graph, restart));
  for (Node* node : initializers) graph->AddControlEdge(*restart, node);
  return OkStatus();
}

Status CheckRestartIsARunOfItsOwn(const Graph& graph) {
  std::set<BufferKey> restarted;
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferRestart(*node)) continue;
    if (auto key = BufferOf(*node)) restarted.insert(*std::move(key));
  }
  if (restarted.empty()) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferTake(*node) && !IsBufferBegin(*node)) continue;
    const std::optional<BufferKey> key = BufferOf(*node);
    if (key && restarted.count(*key) > 0) {
      return errors::InvalidArgument(
          "The run initialises an iterator of stage '", key->name,
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
