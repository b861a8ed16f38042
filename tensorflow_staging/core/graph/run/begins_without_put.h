// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns the TensorBufferBegin nodes among `needed`, the nodes that a run
// needs, into whose buffers it puts no record. In a TensorBufferBegin, a
// producer's run waits until the stage admits it, for example after a restart.
// A run without a Put is not a producer's: it only reads a value of the region,
// and must not wait.
std::vector<const Node*> BeginsWithoutPut(
    const std::vector<const Node*>& needed);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_BEGINS_WITHOUT_PUT_H_
