// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_HOLDS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_HOLDS_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {

// Adds the nodes that hold the stages of a graph: a restart, when an iterator
// is initialised or restored (restart_nodes.h), and a pause, while a checkpoint
// is written (checkpoint_nodes.h).
class StageHolds {
 public:
  explicit StageHolds(Graph* graph) : graph_(graph) {}

  // Adds the nodes of a rewritten stage, if it can be held. `put` is its first
  // Put, and `first_nodes` are what its runs begin with.
  Status Add(const PlannedStage& stage, const Node& put,
             const std::vector<Node*>& first_nodes);

  // Once the nodes of all stages of `plan` are added: orders the holds of
  // stages that follow each other, and connects the checkpoints with what they
  // keep.
  Status Connect(const StagePlan& plan);

 private:
  // The nodes of one stage. Null if the stage has none.
  struct Nodes {
    const Node* put = nullptr;
    Node* restart = nullptr;
    Node* pause = nullptr;
  };

  void Order(const StagePlan& plan);
  Status AddCheckpoints(const StagePlan& plan);

  Graph* const graph_;
  std::map<std::string, Nodes> nodes_;  // By the stage's name.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_STAGE_HOLDS_H_
