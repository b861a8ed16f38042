// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

struct CloneOptions {
  // The name scope of the clones.
  std::string scope;
  // Whether to place the clones on the CPU of the task where the originals
  // would run.
  bool on_cpu = false;
};

// The clones of a region, as one Put of its stage uses them.
struct RegionClones {
  // The clone of each node of the region.
  absl::flat_hash_map<const Node*, Node*> of;
  // The tensors of the record, in the order of the region's boundary.
  std::vector<NodeBuilder::NodeOut> record;
  // The other nodes that must run before the Put: the clones of nodes for which
  // the step, or the Take of a manual stage, waits.
  std::vector<Node*> control_inputs;
};

// Adds clones of the nodes of `stage`'s region, which run ahead of the step.
// Their names are in the scope of `options`. The originals stay as they are;
// ReplaceByStandIns removes them.
//
//   source --> hash                <scope>/source --> <scope>/hash
//
// The clone of a node that is colocated with a node of the region is colocated
// with the clone of that node. The clones share with the step those inputs that
// are outside the region. With `options.on_cpu`, they use copies of them on the
// CPU. `copies` holds the copies made for earlier clones of the stage and
// receives the new ones.
//
// In a manual stage, the clones use the inputs of `put` instead of the outputs
// of the Take, which has no clone. Each Put is run by itself and needs clones of
// its own. For any other stage, `put` is null. Returns INVALID_ARGUMENT if `put`
// and the Take have different types.
Status CloneRegion(const PlannedStage& stage, const Node* put,
                   const CloneOptions& options, CpuCopies* copies, Graph* graph,
                   RegionClones* clones);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_
