// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/name_table.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// Whether `run`, which needs the nodes `needed`, takes a record and feeds
// something.
bool FeedsAndTakes(const RunRequest& run,
                   const std::vector<const Node*>& needed);

// Returns INVALID_ARGUMENT if the run feeds an element of a source, or what is
// computed from one, and uses what a manual stage has computed from it: the
// user divided the graph at the stage, so the fed value does not reach the
// record, and the run would mix the two. `marks` are those of `graph`, which has
// the nodes `needed`.
Status CheckRecordsAreNotFed(const Graph& graph, const NameTable& marks,
                             const RunRequest& run,
                             const std::vector<const Node*>& needed);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_RECORDS_H_
