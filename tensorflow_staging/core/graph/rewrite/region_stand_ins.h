// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_

#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// Gives every name of the region of `stage` to a stand-in on the step's side,
// and removes the nodes that had the names.
//
//   source --> hash --> gather        take --> hash (Identity) --> gather
//                                              source (StagedNode)
//
// A stand-in passes on those outputs of its node that the record carries, has
// the node's device and internal attributes, but for the one by which XLA has
// to compile the node, and waits for `take` if it passes on nothing. `shapes`
// are those of the record.
Status ReplaceByStandIns(const PlannedStage& stage,
                         const std::vector<PartialTensorShape>& shapes,
                         Node* take, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_
