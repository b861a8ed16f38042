// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_

#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {

// The static shapes of a region's record, one for each tensor of its boundary,
// as TensorFlow's shape functions tell them. What they do not tell is unknown:
// this never fails, since a shape is only a help to those who optimise the
// graph.
//
// Looks at the region and at what it depends on, not at the rest of `graph`.
std::vector<PartialTensorShape> BoundaryShapes(const Graph& graph,
                                               const StagedRegion& region);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_
