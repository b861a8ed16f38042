// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {

// Why a node is in the step, and the node in which that reason lies: itself, or
// one that it depends on, such as a variable. Null if there is no such node.
struct LocatedReason {
  StepReason reason = StepReason::kNone;
  const Node* node = nullptr;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_LOCATED_REASON_H_
