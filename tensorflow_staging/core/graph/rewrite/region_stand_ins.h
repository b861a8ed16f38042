// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// Returns the names of those nodes of `regions` with which a node outside their
// region is colocated.
absl::flat_hash_set<std::string> NodesWithColocatedUsers(
    const std::vector<const StagedRegion*>& regions, const Graph& graph);

// Replaces those nodes of `stage`'s region for which the step needs a stand-in:
// those that it uses or waits for, those that records carry, and those with
// which a node outside the region is colocated, whose names are in
// `colocated_with`. Sources have one, too, and so have the stand-ins of the
// stage before in a chain. Removes the others, and in a manual stage its Take,
// which is a node of the region. The region has its clones already.
//
//   source --> hash --> gather    stage/staged/source --> stage/staged/hash
//                                 take --> hash (Identity) --> gather
//                                          source (StagedNode)
//
// A stand-in passes on those outputs of its node that the record carries. If
// there are none, it waits for `take`. It keeps the device and the internal
// attributes of the node, except the one that makes XLA compile the node. A
// StagedNode with an output that is not carried cannot compute it; a run that
// needs it gets the node itself (core/graph/run/step_computation.h).
//
// `shapes` are the static shapes of the record's tensors.
//
// With `beside_take`, the stand-ins of nodes of other tasks are placed on the
// CPU of the Take's task, and no stand-in is colocated with another node:
// what a lookup has fetched from a server must not go back there.
//
// Returns INVALID_ARGUMENT if a stand-in of the stage before has wrong
// attributes.
Status ReplaceByStandIns(const PlannedStage& stage,
                         const absl::flat_hash_set<std::string>& colocated_with,
                         const std::vector<PartialTensorShape>& shapes,
                         bool beside_take, Node* take, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_
