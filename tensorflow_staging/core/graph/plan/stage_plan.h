// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {

// One stage of a graph: the nodes that make it up, or are to make it up.
struct PlannedStage {
  // The name scope of its nodes, and what errors and logs call it.
  std::string name;
  // What SmartStage adds to it; null for a stage of tf.staged to which nothing
  // is added.
  const StagedRegion* region = nullptr;

  // The ops around the buffer of a stage of tf.staged: one Take, a Put for each
  // source of records, and the others. Empty if SmartStage makes the stage.
  const Node* take = nullptr;
  std::vector<const Node*> puts;
  std::vector<const Node*> control_ops;
  // The nodes that yield elements of iterators, or records of stages before, to
  // the Puts and to nothing else.
  std::vector<const Node*> gated_sources;

  // The stages of which gated_sources are Takes, by name.
  std::vector<std::string> stages_before;

  // The ops that initialise an iterator of the stage, or of one before it in a
  // chain of stages. Run again, they start the stage anew.
  std::vector<const Node*> initializers;

  bool by_hand() const { return take != nullptr; }

  // The full names of nodes that SmartStage makes, or that tf.staged has made.
  std::string NodeName(absl::string_view suffix) const;
};

// All stages of a graph. It is a function of the graph alone, so that whoever
// has the graph knows the names of the nodes that a session's pass will make.
class StagePlan {
 public:
  // `smart_stage` says whether nodes between a source and the step are staged;
  // without it the plan knows the stages of tf.staged as they are.
  //
  // `name` is the wish for the name of the stages that SmartStage makes:
  // "prefetch" if it is empty, and with a number where it is taken.
  //
  // `counts` is as for StagePartition: neither the cut nor the names of the
  // stages that SmartStage makes change by nodes that do not count.
  StagePlan(const Graph& graph, bool smart_stage, const std::string& name,
            const NodeFilter& counts = nullptr);

  StagePlan(const StagePlan&) = delete;
  StagePlan& operator=(const StagePlan&) = delete;

  const StagePartition* partition() const { return partition_.get(); }

  // By name.
  const std::vector<PlannedStage>& stages() const { return stages_; }

 private:
  // Whether `node` is in a region.
  bool RunsAhead(const Node& node) const;
  void AddStagesByHand(const Graph& graph);
  void ChainStagesByHand();
  void AddStages(const Graph& graph, const NodeFilter& counts,
                 const std::string& name);

  // Null without smart_stage.
  std::unique_ptr<StagePartition> partition_;
  std::vector<PlannedStage> stages_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_
