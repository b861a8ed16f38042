// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Has the records of stages that run on the CPU wait where the step uses them.
//
// For a graph that RewriteStages has rewritten and that is placed. Where the
// step uses a tensor of a record in the memory of an accelerator of the same
// task, the buffer moves to that accelerator (to the one that uses most of
// them, if several do). Then the Put's input is copied there, as part of the
// staged run, and the step finds it in place. What the step uses on the host
// stays there, in the same record.
Status DeliverToConsumers(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_DELIVERY_H_
