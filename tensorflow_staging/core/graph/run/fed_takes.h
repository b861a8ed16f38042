// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_TAKES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_TAKES_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// A run may feed what tf.staged has returned, by the name of the Take. The
// stand-ins of tensors ahead of the stage get their values from the same Take,
// but their names do not depend on what is fed.

// Whether one of the nodes `needed` is a stand-in that would get a fed value.
bool HasFedStandIn(const RunRequest& run,
                   const std::vector<const Node*>& needed);

// Separates the two in `graph`, the graph of `run`:
//
//   before:   Take --> loss              after:   Take/record --> Take --> loss
//                  --> features                               --> features
//
// "features" is a stand-in, and keeps the value of the record.
Status SeparateFedTakes(const RunRequest& run, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_TAKES_H_
