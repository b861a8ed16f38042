// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_CONSTRUCT_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_CONSTRUCT_NODES_H_

#include <optional>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/control_flow.h"

namespace tensorflow {
namespace staging {

// Knows which nodes of a graph are in the branches of its conditionals and in
// the bodies of its loops, including those to which TensorFlow has lowered
// functional control flow. Searches the graph at the first question, since most
// runs do not ask.
class ConstructNodes {
 public:
  // `graph` must outlive this object, and must not change.
  explicit ConstructNodes(const Graph& graph) : graph_(graph) {}

  ConstructNodes(const ConstructNodes&) = delete;
  ConstructNodes& operator=(const ConstructNodes&) = delete;

  // Whether `edge` also decides whether, or in which iteration, its end runs. A
  // constant in a branch depends on the predicate by such an edge alone.
  bool IsChoice(const Edge& edge) {
    if (!edge.IsControlEdge()) return false;
    if (!control_flow_) {
      control_flow_ = FindControlFlow(
          graph_, std::vector<bool>(graph_.num_node_ids(), true));
    }
    return control_flow_->is_inside[edge.src()->id()];
  }

 private:
  const Graph& graph_;
  std::optional<ControlFlow> control_flow_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_CONSTRUCT_NODES_H_
