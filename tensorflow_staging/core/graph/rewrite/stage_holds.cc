// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_holds.h"

#include "tensorflow_staging/core/graph/rewrite/checkpoint_nodes.h"
#include "tensorflow_staging/core/graph/rewrite/mutable_nodes.h"
#include "tensorflow_staging/core/graph/rewrite/restart_nodes.h"

namespace tensorflow {
namespace staging {

Status StageHolds::Add(const PlannedStage& stage, const Node& put,
                       const std::vector<Node*>& first_nodes) {
  Nodes* added = &nodes_[stage.name];
  added->put = &put;
  std::vector<Node*> initializers = Mutable(stage.initializers, graph_);
  std::vector<Node*> savers;
  for (const SavedIterator& saved : stage.saved_iterators) {
    for (Node* node : Mutable(saved.savers, graph_)) savers.push_back(node);
    for (Node* node : Mutable(saved.restorers, graph_)) {
      initializers.push_back(node);
    }
  }
  if (initializers.empty() && savers.empty()) return OkStatus();
  TF_RETURN_IF_ERROR(AddBegin(stage.name, put, first_nodes, graph_));
  TF_RETURN_IF_ERROR(
      AddRestart(stage.name, put, initializers, graph_, &added->restart));
  return AddPause({stage.name, &put}, savers, graph_, &added->pause);
}

Status StageHolds::Connect(const StagePlan& plan) {
  Order(plan);
  return AddCheckpoints(plan);
}

void StageHolds::Order(const StagePlan& plan) {
  for (const PlannedStage& stage : plan.stages()) {
    const Nodes& nodes = nodes_[stage.name];
    // The program may have added a Restart that no iterator waits for, and
    // that therefore restarts no later stage.
    if (nodes.restart != nullptr) {
      for (const Node* before : stage.restarts_before) {
        graph_->AddControlEdge(nodes.restart, Mutable(before, graph_));
      }
    }
    for (const std::string& before : stage.stages_before) {
      // The later stage of a chain restarts and pauses first. A stage that
      // waits for a record does not reach its Begin, and the stage before it
      // produces none during its own restart or pause.
      if (Node* restart = nodes_[before].restart; restart != nullptr) {
        graph_->AddControlEdge(nodes.restart, restart);
      }
      if (Node* pause = nodes_[before].pause; pause != nullptr) {
        graph_->AddControlEdge(nodes.pause, pause);
      }
    }
  }
}

// Saves and restores the records of each stage with the position of the first
// of its saved iterators.
Status StageHolds::AddCheckpoints(const StagePlan& plan) {
  struct Checkpoint {
    const SavedIterator* iterator = nullptr;
    std::vector<CheckpointedStage> stages;
  };
  // By the id of the iterator's owner, which several stages may share.
  std::map<int, Checkpoint> checkpoints;
  for (const PlannedStage& stage : plan.stages()) {
    if (stage.saved_iterators.empty()) continue;
    const SavedIterator& saved = stage.saved_iterators.front();
    Checkpoint* checkpoint = &checkpoints[saved.owner->id()];
    if (checkpoint->iterator == nullptr) checkpoint->iterator = &saved;
    checkpoint->stages.push_back({stage.name, nodes_[stage.name].put});
  }
  for (const auto& [id, checkpoint] : checkpoints) {
    for (Node* saver : Mutable(checkpoint.iterator->savers, graph_)) {
      TF_RETURN_IF_ERROR(SaveRecordsWith(checkpoint.stages, saver, graph_));
    }
    for (Node* restorer : Mutable(checkpoint.iterator->restorers, graph_)) {
      TF_RETURN_IF_ERROR(
          RestoreRecordsWith(checkpoint.stages, restorer, graph_));
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
