// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_UNIQUE_NAMES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_UNIQUE_NAMES_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Checks that no two nodes have the same name. A node that the user added after
// the stages began to run may have the name of a node that SmartStage creates;
// returns ALREADY_EXISTS then.
Status CheckNamesAreUnique(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_UNIQUE_NAMES_H_
