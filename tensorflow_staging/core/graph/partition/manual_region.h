// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_MANUAL_REGION_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_MANUAL_REGION_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/partition/regions.h"

namespace tensorflow {
namespace staging {

// Returns whether `node` stands for a variable, a table or another resource,
// which it finds by its own name. It is in no region, unless it is in a
// conditional or a loop.
bool IsHandleOp(const Node& node);

// Returns whether `node` yields something else each time that it runs.
bool IsDrawn(const Node& node, NodeRoles* roles);

// Returns the region of the manual stage with `puts` and `take`: of the nodes
// that lead to a Put, those that yield something else each time that they run,
// such as sources, dequeues, draws, and calls of functions with one of these,
// and what depends on them. A conditional or a loop of version 1 is in it as a
// whole. Constants, handles and reads of variables are not: both sides use
// them.
//
// Here, `sources` are all nodes of the region that depend on no other node of
// it. The boundary begins with the inputs of the Put, whether they are of the
// region or not, in their order. The outputs that nodes outside the region use
// follow and, if `content` has elements, the outputs of the sources and of the
// conditionals and loops with a source inside. A stage of several Puts has no
// boundary: each of its records is of one of them. Nodes that `counts` rejects
// use nothing.
//
// A region that needs records of its own stage has no nodes; nor has one of
// which a conditional or a loop needs them elsewhere.
StagedRegion FindManualRegion(const Graph& graph,
                              const std::vector<const Node*>& puts,
                              const Node& take, const NodeFilter& counts,
                              RecordContent content);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_MANUAL_REGION_H_
