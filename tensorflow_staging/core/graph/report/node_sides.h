// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REPORT_NODE_SIDES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REPORT_NODE_SIDES_H_

#include <memory>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/located_reason.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/report/planned_lookups.h"

namespace tensorflow {
namespace staging {

// On which side each node of a graph is: in a stage, in the step, or elsewhere
// (StageReport::GraphNode::side); and why it is in no stage.
class NodeSides {
 public:
  // Why a node of the graph is in no stage.
  struct Why {
    // The node as the partition that found the reason knows it.
    const Node* node = nullptr;
    LocatedReason reason;
  };

  // All arguments must outlive this object. `lookups` may be null. `aligned` is
  // that of SmartStage's plan.
  NodeSides(const Graph& graph, const StagePlan& plan,
            const PlannedLookups* lookups, AlignedWith aligned);

  const Why& WhyNot(const Node& node) const { return why_[node.id()]; }
  int Of(const Node& node) const { return side_[node.id()]; }
  bool IsStaged(const Node& node) const { return Of(node) >= 0; }

 private:
  void FindReasons();
  void FindSides();
  void FindSidesOfLookups();
  bool HoldsState(const Node& node) const;
  void AssignManualStage(const PlannedStage& stage, int index);

  const Graph& graph_;
  const StagePlan& plan_;
  const PlannedLookups* const lookups_;
  // If SmartStage is off, the partition that it would find.
  std::unique_ptr<StagePartition> without_smart_stage_;
  const StagePartition* partition_;
  std::vector<Why> why_;  // By node id.
  // By node id: as GraphNode::side.
  std::vector<int> side_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REPORT_NODE_SIDES_H_
