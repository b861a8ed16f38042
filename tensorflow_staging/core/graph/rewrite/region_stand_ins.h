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

// Replaces every node of `stage`'s region by a stand-in of the same name on the
// step's side.
//
//   source --> hash --> gather        take --> hash (Identity) --> gather
//                                              source (StagedNode)
//
// A stand-in passes on those outputs of its node that the record carries. If
// there are none, it waits for `take`. It keeps the device and the internal
// attributes of the node, except the one that makes XLA compile the node.
//
// `shapes` are the static shapes of the record's tensors.
Status ReplaceByStandIns(const PlannedStage& stage,
                         const std::vector<PartialTensorShape>& shapes,
                         Node* take, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_STAND_INS_H_
