// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGES_BEFORE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGES_BEFORE_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Finds out which manual stages take the records of which others.
//
// `stages` has the names of the nodes that each stage runs: its Puts, and those
// that yield the values of its feeds. Names that the graph lacks are ignored.
//
// Returns, for each stage, the indices of the stages directly before it, in
// ascending order.
std::vector<std::vector<int>> StagesBefore(
    const Graph& graph, const std::vector<std::vector<std::string>>& stages);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGES_BEFORE_H_
