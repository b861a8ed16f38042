// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/run_request.h"
#include "tensorflow_staging/core/graph/run/stages_to_unstage.h"

namespace tensorflow {
namespace staging {

// Unstages `stages` in `graph`: their clones replace the stand-ins and get the
// original names back, so that the step computes the regions itself.
//
// Returns INVALID_ARGUMENT, and leaves `graph` unusable, if marks are malformed
// or connect nodes of different types.
Status Unstage(const StagesToUnstage& stages, Graph* graph);

// Checks that a run of the unstaged `graph` needs no record of `stages`,
// because it feeds everything that it needs of them. Returns INVALID_ARGUMENT
// otherwise.
Status CheckRecordsNotNeeded(const Graph& graph, const RunRequest& run,
                             const StagesToUnstage& stages);

// Replaces the sources of the unstaged `stages` with nodes that do nothing. The
// run does not need the sources, but an optimizer may still make it wait for
// one.
Status ReplaceSources(const StagesToUnstage& stages, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_UNSTAGE_H_
