// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CAPTURED_RESOURCES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CAPTURED_RESOURCES_H_

#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// Moves to the step the sources of iterators whose datasets use a resource that
// other nodes may change, such as a variable that is trained. If such an
// iterator ran ahead, it would see values that are not yet updated. The same
// holds for a resource that the dataset changes and other nodes use.
//
// Looks at the datasets with which the nodes that count initialise an iterator,
// and at all datasets and functions that these consist of.
void MoveIteratorsOfChangingData(const NodeFilter& counts,
                                 PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_CAPTURED_RESOURCES_H_
