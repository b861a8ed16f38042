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
//   1. If the run feeds a tensor that a region uses, it must not take a record,
//      because the record was computed without the fed value. Instead, the
//      stage is unstaged for this run: the step computes the region itself, as
//      it would without the stage. Returns INVALID_ARGUMENT unless the run
//      feeds everything that it needs of the stage.
//   2. Returns FAILED_PRECONDITION if the run fetches a tensor that is computed
//      ahead of the step and that the records do not carry.
//   3. If the run computes nodes of a region but puts no record, it does not
//      run the stage's TensorBufferBegin, in which it would wait until a
//      restart of the stage has ended.
//
// Sets `*run_graph` to a changed copy of `graph`, or to null if the run can
// execute `graph` itself. It is null for every step and every staged run
// without feeds, and after an error.
//
// Returns INVALID_ARGUMENT if the graph's marks are malformed (node_marks.h).
Status FindGraphForRun(const Graph& graph, const CallableOptions& run,
                       std::unique_ptr<Graph>* run_graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_GRAPH_FOR_RUN_H_
