// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_NODES_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// Returns `nodes` in the order of the graph.
std::vector<const Node*> InGraphOrder(
    const absl::flat_hash_set<const Node*>& nodes);

// Returns the nodes that a staged run of `stage` runs, in the order of the
// graph: what leads to the Puts of a manual stage, up to the records of earlier
// stages, or the region of a stage that SmartStage creates.
std::vector<const Node*> NodesOfStage(const PlannedStage& stage);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_NODES_H_
