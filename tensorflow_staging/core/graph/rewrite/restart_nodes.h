// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// In all functions, `put` is a Put of the stage. The new nodes use its buffer
// and are colocated with it. Dotted arrows are control edges.

// Adds the node by which a stage can be held up before its next run:
//
//   <stage>/TensorBufferBegin ..> first nodes of the stage --> ... --> Put
Status AddBegin(const std::string& stage, const Node& put,
                const std::vector<Node*>& first_nodes, Graph* graph);

// Adds the node by which the initialisers of a stage's iterators restart the
// stage, and those ops that set their position:
//
//   <stage>/TensorBufferRestart ..> initialisers
//
// The Restart discards the stage's records. Until the run of the initialiser
// ends, the stage waits in its Begin (tensor_buffer_restart_ops.cc). Sets
// `*restart` to the Restart, or to null if there is no initialiser.
Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_RESTART_NODES_H_
