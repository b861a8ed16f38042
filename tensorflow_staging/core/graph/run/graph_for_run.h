// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_

#include <memory>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// Finds the graph that one run of a session executes, given the session's
// rewritten graph. The run may feed or fetch stand-ins.
//
//   1. A run that feeds a tensor that a region uses must not take a record that
//      was computed without the fed value. If it feeds all that it needs of the
//      stage, the stage is unstaged for this run: the step computes the region
//      itself, as it would without the stage. INVALID_ARGUMENT otherwise.
//   2. A run that fetches a tensor that the records do not carry is refused
//      with FAILED_PRECONDITION.
//   3. A run that computes nodes of a region and puts no record does not wait
//      until a restart of the stage has ended.
//
// `*run_graph` is a changed copy of `graph`, or null where `graph` itself will
// do, as for every step and every staged run without feeds.
//
// Returns INVALID_ARGUMENT if the graph's marks are malformed (node_marks.h).
Status FindGraphForRun(const Graph& graph, const CallableOptions& run,
                       std::unique_ptr<Graph>* run_graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_
