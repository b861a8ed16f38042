// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_on_cpu.h"

namespace tensorflow {
namespace staging {

// How a region is cloned.
struct CloneOptions {
  // The name scope of the clones.
  std::string scope;
  // 0 leaves the clones on the streams of their originals.
  int64_t stream_id = 0;
  // Whether the clones are placed on the CPU of the task where the originals
  // would run.
  bool on_cpu = false;
};

// What computes a region ahead of the step, as its Put sees it.
struct RegionClones {
  // The tensors of the region's boundary.
  std::vector<NodeBuilder::NodeOut> record;
  // What else has to have run before the record is put: what the step, or the
  // Take of a stage of tf.staged, waits for.
  std::vector<Node*> waited_for;
  // The clones that depend on no other clone.
  std::vector<Node*> roots;
};

// Clones the region of `stage`.
//
//   source --> hash                <scope>/source --> <scope>/hash
//
// What was colocated with a node of the region is colocated with its clone.
// What is not of the region is shared, or, on the CPU, copied to there;
// `copies` gets the copies, and has those of the stage's earlier clones.
//
// For a stage of tf.staged, what `put` was given takes the place of what the
// Take yields. Otherwise `put` is null.
Status CloneRegion(const PlannedStage& stage, const Node* put,
                   const CloneOptions& options, CpuCopies* copies, Graph* graph,
                   RegionClones* clones);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_REGION_CLONES_H_
