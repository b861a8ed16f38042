// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Adds the nodes by which the initialisers of a stage's iterators restart the
// stage. Dotted arrows are control edges:
//
//   <stage>/TensorBufferBegin ..> first nodes of the stage --> ... --> Put
//   <stage>/TensorBufferRestart ..> initialisers
//
// The Restart discards the stage's records. Until the run of the initialiser
// ends, the stage waits in its Begin (tensor_buffer_restart_ops.cc).
//
// `put` is a Put of the stage. The new nodes use its buffer and are colocated
// with it. Sets `*restart` to the Restart. Without an initialiser, leaves the
// graph unchanged and sets `*restart` to null.
Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& first_nodes,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_
