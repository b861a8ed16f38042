// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_TRAINING_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_TRAINING_NODES_H_

#include <vector>

#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// What training consists of. The sets are by node id.
struct TrainingNodes {
  // The nodes of the step that update a variable, a table or another resource,
  // and all nodes that these depend on.
  std::vector<bool> lead_to_update;
  // These, and marked nodes with all nodes that they depend on.
  std::vector<bool> needed;
  // The updates on which no other update depends, in the order of the graph:
  // those with which a step of training ends.
  std::vector<const Node*> last_updates;
};

// Finds the nodes that training needs. Summaries and values that are only
// fetched do not count: a step that does not ask for them does not compute
// them, and neither does a stage.
//
// The roles must be set, and the nodes of the step must be known.
TrainingNodes FindTrainingNodes(const PartitionState& state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_TRAINING_NODES_H_
