// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/stage_partition.h"

#include "tensorflow_staging/core/graph/partition/conflicts.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"
#include "tensorflow_staging/core/graph/partition/step_nodes.h"

namespace tensorflow {
namespace staging {

StagePartition::StagePartition(const Graph& graph, const NodeFilter& filter) {
  PartitionState state(graph, filter);
  // 1. Move to the step what cannot run ahead, whatever else does.
  FindStepNodes(filter, &state);
  // 2. Of the others, find those between a source and the step; move to the
  //    step those that cannot run ahead beside each other, and look again. Each
  //    round moves at least one node, and only conflicts of the first round can
  //    cause further ones: two or three rounds in practice.
  state.OrderCandidates();
  do {
    state.AnalyzeCandidates();
  } while (ResolveConflicts(&state));
  // 3. The rest runs ahead.
  regions_ = CollectRegions(&state);
  reasons_ = state.TakeReasons();
}

LocatedReason StagePartition::WhyNot(const Node& node) const {
  return reasons_[node.id()];
}

}  // namespace staging
}  // namespace tensorflow
