// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PUTS_AND_TAKES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PUTS_AND_TAKES_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/buffer_settings.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/region_clones.h"

namespace tensorflow {
namespace staging {

// The nodes around the buffer of one stage: the Put that ends each staged run,
// the Take of the step, and the control ops that the runner runs. All of them
// find the buffer by its container and its shared name, the name of the stage.

// Returns the container for the buffer of `stage`'s region. No other session
// uses it, nor does a region with another boundary: a record must never reach a
// Take that expects other tensors.
std::string ContainerOfRegion(const PlannedStage& stage,
                              const std::string& session);

// Moves the buffer of a manual stage to a container of its session, because
// sessions of one server share resources that have the same name. An op for
// which the graph names a container stays there. Changes nothing else of the
// stage.
void MoveToSession(const PlannedStage& stage, const std::string& session,
                   Graph* graph);

// Adds the nodes around the buffer of a stage that SmartStage found, on the CPU
// of the task of its first source. `container` is that of the buffer, and
// `shapes` are the static shapes of the record's tensors. Sets `*put` and
// `*take` to the new Put and Take.
Status AddBufferNodes(const PlannedStage& stage, const std::string& container,
                      const BufferSettings& buffer, const RegionClones& clones,
                      const std::vector<PartialTensorShape>& shapes,
                      Graph* graph, Node** put, Node** take);

// Replaces `old_put`, a Put of a manual stage, by one of the same name that
// puts the record of the stage's region. Removes `old_put` and sets `*put` to
// the new Put.
Status ExtendPut(Node* old_put, const std::string& container,
                 const RegionClones& clones, Graph* graph, Node** put);

// Adds the constant that a staged run fetches to check that `put` has put a
// record (PlannedStage::check_puts).
Status AddPutCheck(Node* put, Graph* graph);

// Adds the Take `name` for the records of the Puts that ExtendPut creates, and
// moves the control ops to their buffer. Leaves the stage's own Take in the
// graph, with its users.
Status ExtendTake(const PlannedStage& stage, const std::string& name,
                  const std::string& container,
                  const std::vector<PartialTensorShape>& shapes, Graph* graph,
                  Node** take);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_PUTS_AND_TAKES_H_
