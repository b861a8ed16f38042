// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/stages_to_unstage.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {
namespace {

// Adds the stages whose regions use a fed output of a stand-in.
Status AddStagesOfFedStandIns(const Graph& graph, const RunRequest& run,
                              StagesToUnstage* stages) {
  absl::flat_hash_set<absl::string_view> fed_nodes;
  for (const TensorId& tensor : run.fed()) fed_nodes.insert(tensor.node());
  for (const Node* node : graph.op_nodes()) {
    if (!fed_nodes.contains(node->name())) continue;
    std::optional<StandInMark> mark;
    TF_RETURN_IF_ERROR(ReadStandInMark(*node, &mark));
    if (!mark) continue;
    for (int output : mark->used_ahead) {
      if (const TensorId* tensor = run.FindFed(node->name(), output)) {
        stages->emplace(mark->stage, *tensor);
      }
    }
  }
  return OkStatus();
}

// A clone, and the inputs that the search for fed tensors skips.
struct Clone {
  const Node* node;
  absl::flat_hash_set<int> taken_inputs;
};

// By stage.
using Clones = std::map<std::string, std::vector<Clone>>;

// Finds the clones of the stages whose records the run takes, except those of
// the stages in `known`.
Status FindClones(const Graph& graph, const RunRequest& run,
                  const StagesToUnstage& known, Clones* clones) {
  for (const Node* node : run.NeededNodes(graph)) {
    if (!IsBufferTake(*node)) continue;
    const std::optional<std::string> stage = MarkedStage(*node);
    if (stage && known.count(*stage) == 0) (*clones)[*stage];
  }
  if (clones->empty()) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    std::optional<CloneMark> mark;
    TF_RETURN_IF_ERROR(ReadCloneMark(*node, &mark));
    if (!mark) continue;
    const auto it = clones->find(mark->stage);
    if (it == clones->end()) continue;
    Clone clone = {node, {}};
    for (const TakenInput& taken : mark->taken_inputs) {
      clone.taken_inputs.insert(taken.input);
    }
    it->second.push_back(std::move(clone));
  }
  return OkStatus();
}

// Returns the fed tensor that `edge` connects, or null if there is none. A copy
// for the CPU counts as its original.
const TensorId* FedValue(const Edge& edge, const RunRequest& run) {
  if (edge.IsControlEdge()) return nullptr;
  const std::optional<std::string> original = CopiedNode(*edge.src());
  return run.FindFed(original ? *original : edge.src()->name(),
                     edge.src_output());
}

// Returns a fed tensor that `clones` use, directly or through shared nodes, or
// null if there is none. Inputs that the originals had from the Take of a
// manual stage do not count: the user divided the graph there, and the clones
// read the inputs of the Put instead.
const TensorId* FedAhead(const std::vector<Clone>& clones,
                         const RunRequest& run) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> shared;
  for (const Clone& clone : clones) seen.insert(clone.node);
  const auto look = [&](const Edge* edge) -> const TensorId* {
    if (!edge->src()->IsOp()) return nullptr;
    if (const TensorId* tensor = FedValue(*edge, run)) return tensor;
    if (seen.insert(edge->src()).second) shared.push_back(edge->src());
    return nullptr;
  };
  for (const Clone& clone : clones) {
    for (const Edge* edge : clone.node->in_edges()) {
      if (!edge->IsControlEdge() &&
          clone.taken_inputs.contains(edge->dst_input())) {
        continue;
      }
      if (const TensorId* tensor = look(edge)) return tensor;
    }
  }
  for (size_t i = 0; i < shared.size(); ++i) {
    for (const Edge* edge : shared[i]->in_edges()) {
      if (const TensorId* tensor = look(edge)) return tensor;
    }
  }
  return nullptr;
}

}  // namespace

Status FindStagesToUnstage(const Graph& graph, const RunRequest& run,
                           StagesToUnstage* stages) {
  stages->clear();
  if (run.fed().empty()) return OkStatus();
  TF_RETURN_IF_ERROR(AddStagesOfFedStandIns(graph, run, stages));
  Clones clones;
  TF_RETURN_IF_ERROR(FindClones(graph, run, *stages, &clones));
  for (const auto& [stage, nodes] : clones) {
    if (const TensorId* tensor = FedAhead(nodes, run)) {
      stages->emplace(stage, *tensor);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
