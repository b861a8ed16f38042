// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ON_CPU_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ON_CPU_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// The CPU of the task on which `node` asks to be placed.
std::string CpuOfTask(const Node& node);

// Copies of nodes that both sides use, by original.
using CpuCopies = absl::flat_hash_map<const Node*, Node*>;

// A copy of `node` and of what it depends on, under names in `scope`, placed on
// the CPU: a constant that the step has on an accelerator would be copied to
// the host for each record. What hands out a resource is returned as it is,
// since it has to be where the resource is.
Node* CopyToCpu(Node* node, const std::string& scope, Graph* graph,
                CpuCopies* copies);

// Places on the CPU what leads to `puts` and to nothing else, except what holds
// or uses a resource.
void MoveToCpu(const std::vector<const Node*>& puts, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_ON_CPU_H_
