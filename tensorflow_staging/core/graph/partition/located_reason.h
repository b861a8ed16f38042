// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {

// The reason why a node is in the step, and the node that the reason is about:
// the node itself, or another node, such as a variable that it depends on.
// `node` is null if the reason is about no particular node.
struct LocatedReason {
  StepReason reason = StepReason::kNone;
  const Node* node = nullptr;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_
