// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Moves the buffers of stages that run on the CPU to the devices where the step
// uses the records.
//
// `graph` must have been rewritten by RewriteStages and then placed. If the
// step uses a tensor of a record in the memory of an accelerator of the same
// task, the stage's buffer moves to that accelerator; if it uses several
// accelerators, to the one with the most uses. The staged run then copies the
// Put's inputs to that accelerator, and the step finds them there. Tensors that
// the step uses on the host stay in host memory, in the same record.
Status DeliverToConsumers(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_
