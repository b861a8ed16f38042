// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"

namespace tensorflow {
namespace staging {

// One output of a node.
struct StagedTensor {
  const Node* node;
  int index;

  std::string name() const;
};

// Nodes that run ahead of the step as one unit: each run of a region yields one
// record.
struct StagedRegion {
  // The nodes that yield its records, by name: GetNexts of iterators, or the
  // Take of one manual stage.
  std::vector<const Node*> sources;
  // All nodes of the region, sources included, each after its inputs.
  std::vector<const Node*> nodes;
  // The record: the tensors that the step needs, by name.
  std::vector<StagedTensor> boundary;
  // The nodes of the region on which a node of the step has a control edge.
  std::vector<const Node*> control_boundary;
};

// Collects the nodes that `state` stages into regions, one for each group of
// sources, in the order of the names of their first sources. Gives a reason to
// every other node that has none yet.
std::vector<StagedRegion> CollectRegions(PartitionState* state);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REGIONS_H_
