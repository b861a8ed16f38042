// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STEP_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STEP_NODES_H_

#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// Finds the roles of all nodes, and moves to the step the nodes that cannot run
// ahead in any case, together with all nodes that depend on them:
//   * nodes that belong to the step by their role, such as variables;
//   * control flow of version 1 that is not built as TensorFlow builds it;
//   * sources in branches and loops;
//   * users of marked sources;
//   * sources and once-per-record ops that lead to a Put: their manual stage
//     already runs them ahead;
//   * sources of iterators that the step may also read in another way;
//   * sources of iterators whose datasets use a resource that the step changes.
// `stale`, which may be null, says which uses of variables may run ahead. The
// roles are those of `given` and, for other nodes, those that their ops show.
void FindStepNodes(const NodeFilter& filter, const StaleReads* stale,
                   const GivenRoles& given, PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STEP_NODES_H_
