// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_BUFFER_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_BUFFER_NODES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/region_clones.h"

namespace tensorflow {
namespace staging {

// The nodes around the buffer of one stage: a Put for what runs ahead, the Take
// of the step, and the ops by which a runner steers the buffer. All of them
// find it by its container and its name, which is the stage's.

// A container for the buffer of the region of `stage` that no other session,
// and no other cut of the graph, shares: a record must not reach a Take that
// expects another one.
std::string ContainerOfRegion(const PlannedStage& stage,
                              const std::string& session);

// Leaves the buffer of a stage of tf.staged as it is, but in a container of the
// session's own, unless the graph names one: on a server, sessions share what
// has the same name.
void MoveToSession(const PlannedStage& stage, const std::string& session,
                   Graph* graph);

// The buffer of a stage that SmartStage makes.
struct BufferOptions {
  std::string container;
  int64_t capacity = 1;
  int64_t timeout_millis = 300000;
};

// Makes the nodes of a stage that SmartStage makes, on the CPU beside its first
// source. `shapes` are those of the record. `*put` and `*take` get the two that
// others connect to.
Status MakeBufferNodes(const PlannedStage& stage, const BufferOptions& options,
                       const RegionClones& clones,
                       const std::vector<PartialTensorShape>& shapes,
                       Graph* graph, Node** put, Node** take);

// Has a stage of tf.staged put the record of its region in the place of the one
// that it was given: `*put` gets what takes the place of `old_put`, which is
// gone.
Status ExtendPut(Node* old_put, const std::string& container,
                 const RegionClones& clones, Graph* graph, Node** put);

// Makes the Take of the record that the Puts of ExtendPut put, and moves the
// ops that steer the buffer to it. The stage's own Take stays, to be replaced
// with the region.
Status ExtendTake(const PlannedStage& stage, const std::string& container,
                  const std::vector<PartialTensorShape>& shapes, Graph* graph,
                  Node** take);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_BUFFER_NODES_H_
