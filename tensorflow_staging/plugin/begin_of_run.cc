// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/plugin/begin_of_run.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

namespace {

void ReadFirst(Graph* graph) {
  Node* end = nullptr;
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() == kEndReadsOp) end = node;
  }
  if (end == nullptr) return;
  const std::vector<const Node*> reads = WithAncestors({end});
  const absl::flat_hash_set<const Node*> before(reads.begin(), reads.end());
  std::vector<Node*> after;
  for (Node* node : graph->op_nodes()) {
    if (!before.contains(node) &&
        absl::c_all_of(node->in_edges(), [&before](const Edge* edge) {
          return before.contains(edge->src()) || edge->src()->IsSource();
        })) {
      after.push_back(node);
    }
  }
  for (Node* node : after) graph->AddControlEdge(end, node);
}

}  // namespace

Status AddBeginOfRun(Graph* graph) {
  const Node* staged = nullptr;
  for (const Node* node : graph->op_nodes()) {
    if (IsBufferPut(*node) || IsValueOfFeed(*node)) staged = node;
  }
  if (staged == nullptr) return OkStatus();
  std::vector<Node*> first;
  for (Node* node : graph->op_nodes()) {
    if (node->assigned_device_name() != staged->assigned_device_name()) {
      return errors::FailedPrecondition(
          "The region of '", staged->name(), "' is on '",
          staged->assigned_device_name(), "', but '", node->name(), "' is on '",
          node->assigned_device_name(),
          "'. Beside an official TensorFlow, a stage of a session runs on one "
          "device: put it there with tf.device.");
    }
    if (absl::c_all_of(node->in_edges(), [](const Edge* edge) {
          return edge->src()->IsSource();
        })) {
      first.push_back(node);
    }
  }
  Node* begin = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(graph->NewName(staged->name() + "/begin_run"), kBeginRunOp)
          .Finalize(graph, &begin));
  begin->set_assigned_device_name(staged->assigned_device_name());
  graph->AddControlEdge(graph->source_node(), begin);
  for (Node* node : first) graph->AddControlEdge(begin, node);
  ReadFirst(graph);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
