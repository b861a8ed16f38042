// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/run_request.h"
#include "tensorflow_staging/core/graph/run/stages_to_unstage.h"

namespace tensorflow {
namespace staging {

// Gives the clones of `stages` their names back, in the place of the stand-ins,
// so that the step computes the regions itself.
//
// Returns INVALID_ARGUMENT, and leaves `graph` unusable, if marks are malformed
// or connect nodes that do not fit.
Status Unstage(const StagesToUnstage& stages, Graph* graph);

// Checks that a run of the unstaged `graph` needs no record of `stages`: that
// it feeds all that it needs of them. Returns INVALID_ARGUMENT otherwise.
Status CheckRecordsNotNeeded(const Graph& graph, const RunRequest& run,
                             const StagesToUnstage& stages);

// Replaces the sources of the unstaged `stages` by nodes that do nothing. The
// run does not need them, but an optimizer may have it wait for one all the
// same.
Status ReplaceSources(const StagesToUnstage& stages, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_
