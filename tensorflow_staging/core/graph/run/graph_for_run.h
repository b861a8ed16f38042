// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_

#include <memory>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// Finds the graph that one run of a session executes. `graph` is the session's
// rewritten graph. `run` uses the names of the user's graph, so it may feed or
// fetch stand-ins.
//
//   1. If the run asks for a tensor of a region that the records do not carry,
//      the step computes it from the elements that they carry.
//   2. If the run feeds a tensor that a region uses, the record was computed
//      without the fed value. So the stage is unstaged for this run: the step
//      computes all that it needs of the region, as it would without the stage.
//   3. If the run needs only some of the sources that a region joins, the stage
//      is unstaged, too: the step reads these sources, and no others.
//   4. If the run feeds what tf.staged has returned, names ahead of the stage keep
//      the values of the record.
//   5. A run that needs only a part of the graph, as a staged run does, gets
//      only this part, because TensorFlow copies and optimizes the graph for
//      each set of feeds and fetches.
//
// Sets `*run_graph` to a changed copy of `graph`, or to null if the run can
// execute `graph` itself, and after an error.
//
// Returns the errors of StepComputation and of CheckRecordsAreNotFed, or
// INVALID_ARGUMENT if the graph's marks are malformed (node_marks.h).
Status FindGraphForRun(const Graph& graph, const CallableOptions& run,
                       std::unique_ptr<Graph>* run_graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_
