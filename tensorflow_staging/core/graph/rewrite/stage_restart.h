// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_RESTART_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_RESTART_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Lets the initialisers of a stage's iterators start the stage anew.
//
//   <stage>/TensorBufferBegin ..> first nodes of the stage --> ... --> Put
//   <stage>/TensorBufferRestart ..> initialisers
//
// A Restart throws away what was staged, and has the stage wait in its Begin
// until the step of the initialiser has ended (tensor_buffer_restart_ops.cc).
//
// `put` is a Put of the stage; the new nodes find its buffer, and are beside
// it. `*restart` gets the Restart, or null if there is no initialiser: then
// nothing changes.
Status AddRestart(const std::string& stage, const Node& put,
                  const std::vector<Node*>& first_nodes,
                  const std::vector<Node*>& initializers, Graph* graph,
                  Node** restart);

// Checks that the run of `graph` does not wait for itself: what starts a stage
// anew ends with the run, and no record comes before. Returns INVALID_ARGUMENT
// if the run also takes a record of the stage, or makes one.
Status CheckRestartIsARunOfItsOwn(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_RESTART_H_
