// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Checks that a run of `graph` would not wait for itself. A run that
// initialises or restores an iterator restarts the iterator's stage, and a run
// that saves its position pauses it. Both last until that run ends, and the
// stage yields no record before then. Returns INVALID_ARGUMENT if the same run
// also takes or produces a record of the stage.
Status CheckRestartIsARunOfItsOwn(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_RESTART_CHECK_H_
