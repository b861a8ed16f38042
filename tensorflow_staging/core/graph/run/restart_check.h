// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Checks that `graph`, the graph of one run, does not wait for itself. A
// restart lasts until its run ends, and the stage has no record before then.
// Returns INVALID_ARGUMENT if a run that restarts a stage also takes or
// produces a record of it.
Status CheckRestartIsARunOfItsOwn(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_
