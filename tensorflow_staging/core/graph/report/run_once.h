// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REPORT_RUN_ONCE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REPORT_RUN_ONCE_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Finds the nodes that prepare what the steps use, and do their work once,
// before the first step:
//   * datasets, and the handles and initialisers of iterators, with the strings
//     that stand for the handles;
//   * the handles of tables that only their initialisers fill, and these
//     initialisers;
//   * the initialisers of variables, as ChangingResources finds them, and the
//     questions whether a variable is initialised;
//   * the nodes that only these use, such as initial values;
//   * the nodes that use nothing else, such as the group of all initialisers.
//
// A graph does not say what runs once. A node counts only if nothing suggests
// that a step runs it, so some nodes that run once are missed.
//
// Returns a flag for each node id.
std::vector<bool> FindNodesThatRunOnce(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REPORT_RUN_ONCE_H_
