// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Protects the records of stages from a bug of TensorFlow 2.14.1.
//
// Grappler replaces a Pack that reads one tensor several times by a Tile of
// that tensor, but loses the index of the tensor among the outputs of its node:
// tf.stack([x, x]) stacks the node's first output instead. The bug matters if
// that node has several outputs, as a Take may have, and if the Pack reads it
// directly or through identities. Between such a Take and such a Pack, this
// function inserts a StagedNode with one output, which Grappler does not touch.
Status GuardPacksOfTakenTensors(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PACK_GUARD_H_
