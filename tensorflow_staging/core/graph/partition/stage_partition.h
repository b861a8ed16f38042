// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/partition/located_reason.h"
#include "tensorflow_staging/core/graph/partition/regions.h"
#include "tensorflow_staging/core/graph/partition/step_nodes.h"

namespace tensorflow {
namespace staging {

// The runs that advance all sources of a region, or none.
enum class AlignedWith {
  // Each run: each tensor that goes to the step depends on all sources.
  kEachRun,
  // At least those that train, if an iterator has several sources, such as one
  // for each tower of a model. Of an update with which a step of training ends,
  // that depends on any of the sources, all of them are inputs. For a run that
  // needs some of the sources alone, the stage has to be unstaged
  // (graph/run/step_computation.h).
  kTraining,
};

// Returns what the regions of SmartStage are aligned with. The stages of lookups,
// which follow the others, cannot be unstaged.
inline AlignedWith AlignmentOfSmartStage(bool can_unstage,
                                         bool stages_lookups) {
  return can_unstage && !stages_lookups ? AlignedWith::kTraining
                                        : AlignedWith::kEachRun;
}

// The division of a graph into regions, which run ahead of the step, and the
// step, with a reason for every node that does not run ahead.
//
// A node can run ahead if neither it nor any node that it depends on, by data
// or by control, belongs to the step (NodeRole::kStepOnly). Of these nodes, the
// partition stages those between a source and what training needs: they depend
// on a source, and a node that updates a variable, or a marked node, depends on
// them. If no source of a node leads to an update, as in a graph that only
// predicts, any node of the step counts. A pure node that depends on no
// source, such as a constant, is shared: both sides use it.
//
// A conditional or a loop of version 1 of control flow is staged as a whole or
// not at all (control_flow.h), so that a record holds no dead tensor and no
// tensor of a frame.
//
// What only summaries or occasional fetches need is computed in the step, when
// a run asks for it, from what the record carries. For what depends on a
// variable as well, such as a loss, that includes the region's tensors.
//
// Records and steps stay aligned, because each tensor that the step needs for
// each record depends on all of the region's sources: without the stage, a step
// that uses the record would have advanced exactly these sources. Where this
// would not hold, nodes that join sources stay in the step, and so do the
// sources of an iterator that the step also reads. AlignedWith makes an
// exception of this.
class StagePartition {
 public:
  // Takes time and memory linear in the nodes and edges of `graph`, apart from
  // a factor for the number of sources that a single node depends on.
  //
  // With `filter`, computes the partition that the graph had before the nodes
  // that `filter` rejects were added.
  //
  // With `stale`, which must outlive the constructor, lookups in the variables
  // of `stale` may run ahead. The records carry what they yield, because the
  // step could not look it up again: the variables have changed by then.
  //
  // `given` are the roles of nodes whose ops do not show them.
  explicit StagePartition(const Graph& graph, const NodeFilter& filter = {},
                          RecordContent content = RecordContent::kElements,
                          const StaleReads* stale = nullptr,
                          const GivenRoles& given = {},
                          AlignedWith aligned = AlignedWith::kEachRun);

  StagePartition(const StagePartition&) = delete;
  StagePartition& operator=(const StagePartition&) = delete;

  // Sorted by the name of their first source. No two regions share a node.
  const std::vector<StagedRegion>& regions() const { return regions_; }

  // Returns why `node` does not run ahead; kNone if it does.
  LocatedReason WhyNot(const Node& node) const;

 private:
  std::vector<StagedRegion> regions_;
  std::vector<LocatedReason> reasons_;  // By node id.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_STAGE_PARTITION_H_
