// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_

#include <functional>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns whether a node counts. The analysis treats a graph as if it had only
// the nodes that count. With a null filter, all nodes count.
using NodeFilter = std::function<bool(const Node&)>;

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_
