// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/stage_partition.h"

#include <utility>

#include "tensorflow_staging/core/graph/partition/conflicts.h"
#include "tensorflow_staging/core/graph/partition/partition_state.h"
#include "tensorflow_staging/core/graph/partition/step_nodes.h"
#include "tensorflow_staging/core/graph/partition/training_nodes.h"

namespace tensorflow {
namespace staging {

StagePartition::StagePartition(const Graph& graph, const NodeFilter& filter,
                               RecordContent content, const StaleReads* stale,
                               const GivenRoles& given, AlignedWith aligned) {
  PartitionState state(graph, filter);
  // 1. Move to the step the nodes that cannot run ahead in any case.
  FindStepNodes(filter, stale, given, &state);
  TrainingNodes training = FindTrainingNodes(state);
  state.SetTrainingNodes(std::move(training.needed),
                         std::move(training.lead_to_update));
  if (aligned == AlignedWith::kTraining) {
    state.AlignWith(std::move(training.last_updates));
  }
  // 2. Find the nodes between a source and what training needs. Move to the
  //    step those that conflict with each other, and repeat until no node moves.
  //    Only conflicts of the first round can cause further ones, so that there
  //    are two or three rounds in practice.
  state.OrderCandidates();
  do {
    state.AnalyzeCandidates();
  } while (ResolveConflicts(&state));
  // 3. The remaining staged nodes run ahead.
  regions_ = CollectRegions(content, stale, &state);
  reasons_ = state.TakeReasons();
}

LocatedReason StagePartition::WhyNot(const Node& node) const {
  return reasons_[node.id()];
}

}  // namespace staging
}  // namespace tensorflow
