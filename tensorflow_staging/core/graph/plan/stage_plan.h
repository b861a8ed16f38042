// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {

// One stage of a graph, with its existing nodes and those that the rewrite will
// add.
struct PlannedStage {
  // The name scope of the stage's nodes, and its name in errors and logs. No
  // two stages have the same. A manual stage has the shared_name of its buffer,
  // unless an earlier stage has that already, with a buffer in another
  // container; then it has that name with a number.
  std::string name;
  // The region that SmartStage runs in this stage. Null for a manual stage to
  // which SmartStage adds nothing.
  const StagedRegion* region = nullptr;

  // The ops around the buffer of a manual stage: one Take, one Put for each
  // source of records, and the control ops. Empty if SmartStage creates the
  // stage.
  const Node* take = nullptr;
  std::vector<const Node*> puts;
  std::vector<const Node*> control_ops;

  // Whether the Puts need a check that they have put a record: some of the
  // nodes that lead to them are Switches, so a tensor of the record may be
  // dead, and the runtime skips a Put with a dead input without an error. A
  // tensor of a branch that is not chosen is dead. TensorFlow's optimizers have
  // been seen to break nested conditionals of version 1, whose result is then
  // dead too.
  bool check_puts = false;

  // Whether this is a manual stage.
  bool is_manual() const { return take != nullptr; }

  // Returns the full name of a node that SmartStage will create, or that
  // tf.staged has created.
  std::string NodeName(absl::string_view suffix) const;

  // Returns the nodes that a staged run runs, in the order of the graph: what
  // leads to the Puts of a manual stage, up to the records of earlier stages, or
  // the region of a stage that SmartStage creates.
  std::vector<const Node*> Nodes() const;
};

// All stages of a graph. The plan depends only on its arguments.
class StagePlan {
 public:
  // `smart_stage` says whether to stage nodes between a source and the step.
  // Without it, the plan contains only the manual stages, unchanged.
  //
  // `name` is the preferred name of the stages that SmartStage creates. An
  // empty `name` means "prefetch". A number is appended to a name that is
  // taken.
  //
  // `counts`, `content` and `aligned` are as for StagePartition: nodes that do not
  // count change neither the partition nor the names of the stages that SmartStage
  // creates.
  StagePlan(const Graph& graph, bool smart_stage, const std::string& name,
            const NodeFilter& counts = {},
            RecordContent content = RecordContent::kElements,
            AlignedWith aligned = AlignedWith::kEachRun);

  // Plans the stages of the lookups that may run ahead according to `stale`.
  // `graph` is a rewritten graph. Where it has stages already, these stages are
  // chained after them, and are the only ones in this plan. The stages get
  // names like `name`.
  StagePlan(const Graph& graph, const StaleReads& stale,
            const std::string& name, const NodeFilter& counts = {});

  StagePlan(const StagePlan&) = delete;
  StagePlan& operator=(const StagePlan&) = delete;

  const StagePartition* partition() const { return partition_.get(); }

  // Sorted by name.
  const std::vector<PlannedStage>& stages() const { return stages_; }

 private:
  void AddManualStages(const Graph& graph, const NodeFilter& counts);
  // Adds the regions of the partition, to manual stages or as new stages.
  void AddRegions(const Graph& graph, const NodeFilter& counts,
                  const std::string& name);

  // Null without smart_stage, unless this is a plan of lookups.
  std::unique_ptr<StagePartition> partition_;
  std::vector<PlannedStage> stages_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLAN_STAGE_PLAN_H_
