// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_

#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// Moves to the step nodes that may each run ahead, but not beside what else is
// staged:
//   * handles that depend on a record: a clone would be another resource;
//   * draws that the step uses as well: two draws would give each side another
//     value;
//   * sources of iterators that the step reads as well: the step would miss the
//     records that run ahead;
//   * nodes that join sources which the step may advance independently.
//
// Returns whether any node moved; then `state` has to be analyzed again.
// Otherwise the groups of `state` are set: the sources of one group advance
// together.
bool ResolveConflicts(PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_
