// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/restart_check.h"

#include <optional>
#include <set>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"

namespace tensorflow {
namespace staging {

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
          "' and also takes or produces a record of the stage, at node '",
          node->name(),
          "'. The stage restarts only when the run has ended, so the run would "
          "wait for itself. Initialise the iterator in a run of its own.");
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
