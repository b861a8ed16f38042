// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CONTROL_FLOW_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CONTROL_FLOW_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns whether `edge` closes a loop, from a NextIteration to a Merge. A
// graph without these edges has no cycle.
bool IsBackEdge(const Edge& edge);

// The control flow of version 1 in a graph: conditionals, made of Switch and
// Merge, and loops, made of Enter, Exit and NextIteration.
//
// A node after a Switch is dead, and computes nothing, unless the Switch has
// chosen its branch. A node between Enter and Exit runs in a frame of its loop,
// once for each iteration. Neither a dead tensor nor a tensor of a frame can be
// carried by a record. So nodes that such a tensor connects must be on one
// side. A construct is a largest group of such nodes: in a well-formed graph a
// conditional or a loop, with those nested in it.
struct ControlFlow {
  static constexpr int kNoConstruct = -1;

  // The nodes of each construct, by the construct's number.
  std::vector<std::vector<const Node*>> constructs;
  // By number of the construct: whether it has a result, which is a node that
  // neither may be dead nor belongs to a frame. A conditional may have none:
  // tf.cond adds a Switch of the predicate, the pivot, for which nodes without
  // inputs wait if there are any.
  std::vector<bool> has_result;
  // By node id: the number of the node's construct, or kNoConstruct.
  std::vector<int> construct_of;
  // By node id: whether the node may be dead, or whether what it yields belongs
  // to a frame.
  std::vector<bool> is_inside;
  // The nodes that break a rule which tf.cond and tf.while_loop keep, so that
  // nothing is known about what depends on them:
  //   * Merges of which it is unknown whether an input is always alive. It is
  //     known if the inputs come from all branches of a conditional, also of
  //     nested ones;
  //   * loops of which it is unknown whether they run to their end;
  //   * nodes whose inputs are of different frames, or are missing;
  //   * cycles that are no loops.
  std::vector<const Node*> irregular;
};

// Finds the control flow among the nodes of `graph` that count, by node id. The
// graph's own source and sink nodes never do.
// Takes time linear in the nodes and edges, apart from a factor for the depth
// of nesting.
ControlFlow FindControlFlow(const Graph& graph,
                            const std::vector<bool>& counts);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CONTROL_FLOW_H_
