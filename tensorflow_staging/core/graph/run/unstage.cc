// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/unstage.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

struct Clone {
  Node* node;
  CloneMark mark;
};

// By the name of the original. A manual stage with several Puts has several
// clones of each node; any of them will do.
using Clones = absl::flat_hash_map<std::string, Clone>;

Status DoNotFit(const Node& from, const Node& to) {
  return errors::InvalidArgument(
      "SmartStage's attributes of node '", from.name(), "' (",
      DataTypeVectorString(from.output_types()), ") lead to node '", to.name(),
      "' (", DataTypeVectorString(to.output_types()),
      "), which has other types.");
}

Status MoveOutEdges(Node* from, Node* to, Graph* graph) {
  if (from->output_types() != to->output_types()) return DoNotFit(*from, *to);
  const std::vector<const Edge*> edges(from->out_edges().begin(),
                                       from->out_edges().end());
  for (const Edge* edge : edges) {
    const int output = edge->src_output();
    Node* const dst = edge->dst();
    const int input = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(to, output, dst, input);
  }
  return OkStatus();
}

// Connects the users of copies for the CPU to the originals, because the run
// may feed the originals.
Status UseOriginalsOfCopies(Graph* graph) {
  // Each stage has copies of its own.
  absl::flat_hash_map<std::string, std::vector<Node*>> copies;
  for (Node* node : graph->op_nodes()) {
    if (auto original = CopiedNode(*node)) copies[*original].push_back(node);
  }
  if (copies.empty()) return OkStatus();
  for (Node* node : graph->op_nodes()) {
    const auto it = copies.find(node->name());
    if (it == copies.end()) continue;
    for (Node* copy : it->second) {
      TF_RETURN_IF_ERROR(MoveOutEdges(copy, node, graph));
    }
  }
  return OkStatus();
}

// Connects an input of `clone` to `take`, the stand-in of a Take.
Status ConnectToTake(Node* take, const TakenInput& taken, Node* clone,
                     Graph* graph) {
  if (taken.input == Graph::kControlSlot) {
    graph->AddControlEdge(take, clone);
    return OkStatus();
  }
  if (taken.take_output >= take->num_outputs() ||
      take->output_type(taken.take_output) != clone->input_type(taken.input)) {
    return DoNotFit(*clone, *take);
  }
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(clone->input_edge(taken.input, &edge));
  graph->RemoveEdge(edge);
  graph->AddEdge(take, taken.take_output, clone, taken.input);
  return OkStatus();
}

// Connects the clones of a manual stage to `take`, the stand-in of its Take,
// instead of the inputs of its Put.
Status ConnectClonesToTake(Node* take, const std::string& stage,
                           const Clones& clones, Graph* graph) {
  for (const auto& [original, clone] : clones) {
    if (clone.mark.stage != stage) continue;
    for (const TakenInput& taken : clone.mark.taken_inputs) {
      TF_RETURN_IF_ERROR(ConnectToTake(take, taken, clone.node, graph));
    }
  }
  return OkStatus();
}

// Returns the stage of `stages` whose records `node` yields in an unstaged
// graph; nothing if there is none.
std::optional<std::string> StageOfSource(const Node& node,
                                         const StagesToUnstage& stages) {
  std::optional<std::string> stage = MarkedStage(node);
  const bool yields_records = stage && stages.count(*stage) > 0 &&
                              (IsSourceOp(node) || IsStandIn(node));
  return yields_records ? stage : std::nullopt;
}

}  // namespace

Status Unstage(const StagesToUnstage& stages, Graph* graph) {
  TF_RETURN_IF_ERROR(UseOriginalsOfCopies(graph));
  Clones clones;
  std::vector<std::pair<Node*, StandInMark>> stand_ins;
  for (Node* node : graph->op_nodes()) {
    const std::optional<std::string> stage = MarkedStage(*node);
    if (!stage || stages.count(*stage) == 0) continue;
    std::optional<CloneMark> clone;
    TF_RETURN_IF_ERROR(ReadCloneMark(*node, &clone));
    if (clone) {
      clones.emplace(clone->original, Clone{node, *clone});
      continue;
    }
    std::optional<StandInMark> stand_in;
    TF_RETURN_IF_ERROR(ReadStandInMark(*node, &stand_in));
    if (stand_in) stand_ins.emplace_back(node, *std::move(stand_in));
  }
  for (const auto& [stand_in, mark] : stand_ins) {
    const auto it = clones.find(stand_in->name());
    if (it == clones.end()) {
      TF_RETURN_IF_ERROR(
          ConnectClonesToTake(stand_in, mark.stage, clones, graph));
      continue;
    }
    Node* clone = it->second.node;
    TF_RETURN_IF_ERROR(MoveOutEdges(stand_in, clone, graph));
    graph->RemoveNode(stand_in);
    clone->set_name(it->first);
  }
  return OkStatus();
}

Status CheckRecordsNotNeeded(const Graph& graph, const RunRequest& run,
                             const StagesToUnstage& stages) {
  for (const Node* node : run.NeededNodes(graph)) {
    const std::optional<std::string> stage = StageOfSource(*node, stages);
    if (!stage) continue;
    return errors::InvalidArgument(
        "Tensor '", stages.at(*stage).ToString(),
        "' is fed, but nodes that depend on it are computed ahead of the step, "
        "in stage '",
        *stage, "', and the step also needs the stage's records, through '",
        node->name(),
        "'. Feed everything that the step needs of the stage, or call "
        "tf.train.mark_target_node([x]) with the fed tensor before the session "
        "is created, which keeps the nodes that depend on it in the step.");
  }
  return OkStatus();
}

Status ReplaceSources(const StagesToUnstage& stages, Graph* graph) {
  std::vector<std::pair<Node*, std::string>> sources;
  for (Node* node : graph->op_nodes()) {
    if (auto stage = StageOfSource(*node, stages)) {
      sources.emplace_back(node, *std::move(stage));
    }
  }
  for (const auto& [source, stage] : sources) {
    Node* empty = nullptr;
    TF_RETURN_IF_ERROR(NodeBuilder(source->name(), kStagedNodeOp)
                           .Input(std::vector<NodeBuilder::NodeOut>())
                           .Attr(kDtypesAttr, source->output_types())
                           .Attr(kIndicesAttr, std::vector<int>())
                           .Attr(kStageNameAttr, stage)
                           .Device(source->assigned_device_name())
                           .Finalize(graph, &empty));
    empty->set_assigned_device_name(source->assigned_device_name());
    TF_RETURN_IF_ERROR(MoveOutEdges(source, empty, graph));
    graph->RemoveNode(source);
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
