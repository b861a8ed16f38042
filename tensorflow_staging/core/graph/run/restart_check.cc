// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/restart_check.h"

#include <map>
#include <optional>
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"

namespace tensorflow {
namespace staging {

Status CheckRestartIsARunOfItsOwn(const Graph& graph) {
  // The stages that the run restarts or pauses, each with the node that does.
  std::map<BufferKey, const Node*> held;
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferRestart(*node) && !IsBufferPause(*node)) continue;
    if (auto key = BufferOf(*node)) held.emplace(*std::move(key), node);
  }
  if (held.empty()) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferTake(*node) && !IsBufferBegin(*node)) continue;
    const std::optional<BufferKey> key = BufferOf(*node);
    const auto it = key ? held.find(*key) : held.end();
    if (it == held.end()) continue;
    const bool restarts = IsBufferRestart(*it->second);
    return errors::InvalidArgument(
        "The run ",
        restarts ? "initialises or restores" : "saves the position of",
        " an iterator of stage '", key->name,
        "' and also takes or produces a record of the stage, at node '",
        node->name(), "'. The stage ", restarts ? "restarts" : "goes on",
        " only when the run has ended, so the run would wait for itself. ",
        restarts ? "Initialise" : "Save", " the iterator in a run of its own.");
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
