// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_

#include <functional>
#include <utility>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Says which nodes of a graph count: the analysis treats the graph as if it had
// only those. All of them do, unless the graph grows beside running stages,
// which do not change for nodes that are added.
class NodeFilter {
 public:
  // All nodes count.
  NodeFilter() = default;
  // The graph grows; `counts` accepts the nodes that it had before.
  explicit NodeFilter(std::function<bool(const Node&)> counts)
      : counts_(std::move(counts)) {}

  bool graph_grows() const { return counts_ != nullptr; }

  bool operator()(const Node& node) const {
    return counts_ == nullptr || counts_(node);
  }

  // As above, for a node that may be the graph's source or sink, which do not
  // count.
  bool CountsOp(const Node& node) const { return node.IsOp() && (*this)(node); }

 private:
  std::function<bool(const Node&)> counts_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_FILTER_H_
