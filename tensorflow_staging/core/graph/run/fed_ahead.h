// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_AHEAD_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_AHEAD_H_

#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow_staging/core/graph/run/construct_nodes.h"
#include "tensorflow_staging/core/graph/run/name_table.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// What a run feeds to nodes of regions. The records were computed without the
// fed values.
struct FedAhead {
  // The original names of the nodes of regions whose values depend on a fed
  // tensor, or that wait for an element of a fed handle, with that tensor.
  absl::flat_hash_map<std::string, TensorId> nodes;
  // The original names of the nodes that only wait for those, or for what does.
  absl::flat_hash_set<std::string> waiting;
  // The stages of the nodes whose values depend on a fed tensor.
  std::map<std::string, TensorId> stages;
};

// Finds the nodes of regions that depend on a fed tensor: on an output of
// another node of the region, of the Take of their manual stage, or of a shared
// node, such as a constant. `marks` and `construct_nodes` are those of `graph`.
FedAhead FindFedAhead(const Graph& graph, const NameTable& marks,
                      const RunRequest& run, ConstructNodes* construct_nodes);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_FED_AHEAD_H_
