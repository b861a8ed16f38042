// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_

#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// Moves to the step the nodes that could run ahead on their own, but not
// together with the other staged nodes:
//   * handles that depend on a record: a clone would be another resource;
//   * constructs of which the step uses a result that does not depend on all of
//     the construct's sources;
//   * tensor arrays that the step also uses: an array lives in one run;
//   * draws that the step also uses: each side would draw a different value;
//   * sources of iterators that the step also reads: the step would miss the
//     records that run ahead;
//   * nodes that join sources which the step may advance independently
//     (AlignedWith).
//
// Returns whether any node moved; if so, the caller must analyze `state` again.
// Otherwise, sets the groups of `state`: the sources of one group advance
// together.
bool ResolveConflicts(PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CONFLICTS_H_
