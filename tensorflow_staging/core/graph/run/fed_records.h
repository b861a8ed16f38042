// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/construct_nodes.h"
#include "tensorflow_staging/core/graph/run/name_table.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// Whether `run`, which needs the nodes `needed`, takes a record and feeds
// something.
bool FeedsAndTakes(const RunRequest& run,
                   const std::vector<const Node*>& needed);

// Returns INVALID_ARGUMENT if the run uses a tensor of a record that was
// computed from a tensor which the run feeds: the record was computed without
// the fed value, so that the run would mix the two. Where SmartStage divided the
// graph, or the run asks for names ahead of a manual stage, the step computes
// anew what depends on the fed tensor, and does not use the record. Where the
// user divided it, by tf.staged, the fed value cannot reach the record.
//
// `graph` is the session's, and `marks` and `construct_nodes` are of it. `needed`
// are the nodes that the run executes, of the graph that it executes.
Status CheckRecordsAreNotFed(const Graph& graph, const NameTable& marks,
                             const RunRequest& run,
                             const std::vector<const Node*>& needed,
                             ConstructNodes* construct_nodes);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_
