// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Keeps a mistake of TensorFlow 2.14.1 away from the records of stages.
//
// Grappler turns a Pack of one tensor, several times, into a Tile of it, and
// forgets which output of its node the tensor is: tf.stack([x, x]) gets the
// node's first output instead. It strikes where a Pack reads, if need be
// through identities, a node with several outputs, as a Take is. There a
// StagedNode with one output comes between, which Grappler leaves alone.
Status GuardPacksOfTaken(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_
