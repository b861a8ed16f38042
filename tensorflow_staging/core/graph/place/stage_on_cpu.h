// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_ON_CPU_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_ON_CPU_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The name of the CPU of the task that `node` requests for its placement.
std::string CpuOfTask(const Node& node);

// Copies of shared nodes, by original.
using CpuCopies = absl::flat_hash_map<const Node*, Node*>;

// Copies `node`, and all nodes that it depends on, to the CPU, with names in
// `scope`. `*copy` gets the copy of `node`. Without the copy, a constant that
// the step uses on an accelerator would be transferred to the host for each
// record. Reuses the copies in `copies` and adds the new ones.
//
// Does not copy a node that holds or uses a resource, since that node must run
// where the resource is, nor a loop of version 1, since its copy would have a
// frame of the same name; `*copy` is the original then.
Status CopyToCpu(Node* node, const std::string& scope, Graph* graph,
                 CpuCopies* copies, Node** copy);

// Whether none of `nodes` asks for an accelerator, or for a stream of one.
bool AskForNoAccelerator(const std::vector<const Node*>& nodes);

// Places on the CPU all nodes that lead to `puts` and to nothing else, except
// those that hold or use a resource.
void MoveToCpu(const std::vector<const Node*>& puts, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_ON_CPU_H_
