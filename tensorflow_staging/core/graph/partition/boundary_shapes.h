// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_

#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {

// Returns the static shapes of a region's record, one for each tensor of its
// boundary, as TensorFlow's shape functions infer them. A shape that they
// cannot infer is unknown. Never fails, since the shapes only help to optimise
// the graph.
//
// Reads only the region and the nodes that it depends on, not the rest of
// `graph`.
std::vector<PartialTensorShape> BoundaryShapes(const Graph& graph,
                                               const StagedRegion& region);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_BOUNDARY_SHAPES_H_
