// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_BUFFER_OP_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_BUFFER_OP_H_

#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace staging {

// Returns the builder of a node <name> that runs `op` on the buffer of `put`.
// It has the attributes by which `put` finds the buffer, and is colocated with
// it.
NodeBuilder BufferOp(const std::string& name, const char* op, const Node& put);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_BUFFER_OP_H_
