// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_FETCH_CHECK_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_FETCH_CHECK_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// Checks, before the run takes a record, that the records carry every tensor
// that the run fetches from a StagedNode, the stand-in of a node with several
// outputs or with an output that no record carries. Returns FAILED_PRECONDITION
// if not, or another error if a fetched StagedNode is malformed.
Status CheckFetches(const Graph& graph, const RunRequest& run);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_FETCH_CHECK_H_
