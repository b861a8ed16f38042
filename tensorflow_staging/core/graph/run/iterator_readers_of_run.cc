// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/iterator_readers_of_run.h"

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {
namespace {

// In a large graph, almost every node ends here.
bool ConcernsIterator(const Node& node) {
  return absl::StrContains(node.type_string(), "Iterator");
}

}  // namespace

Status CheckNoSourceReadsBeside(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    if (!ConcernsIterator(*node)) continue;
    if (const std::optional<std::string> error = ErrorOfReadingBeside(*node)) {
      return errors::FailedPrecondition(*error);
    }
  }
  return OkStatus();
}

Status CheckFeedsAreNotDrawnAgain(const Graph& graph) {
  const Node* take = nullptr;
  for (const Node* node : graph.op_nodes()) {
    if (IsBufferTake(*node) && HasFeeds(*node)) take = node;
  }
  if (take == nullptr) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    if (node == take || !IsReadForFeeds(*node)) continue;
    return errors::FailedPrecondition(
        "The run takes a record by '", take->name(), "' and needs '",
        node->name(), "' (", node->type_string(),
        "), from which the feed_dict of a stage feeds the stage: the record "
        "was computed from another element. Feed the stage all that the step "
        "uses of it, and let the features of tf.staged contain the fed "
        "tensors.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
