// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"

#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/rewrite/pack_guard.h"
#include "tensorflow_staging/core/graph/rewrite/region_clones.h"
#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"
#include "tensorflow_staging/core/graph/rewrite/stage_buffer_nodes.h"
#include "tensorflow_staging/core/graph/rewrite/stage_on_cpu.h"
#include "tensorflow_staging/core/graph/rewrite/stage_restart.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kCloneScope[] = "staged";

// `node` as it may be changed: the plan was made of the same graph.
Node* Mutable(const Node* node, Graph* graph) {
  return graph->FindNodeId(node->id());
}

std::vector<Node*> Mutable(const std::vector<const Node*>& nodes,
                           Graph* graph) {
  std::vector<Node*> found;
  for (const Node* node : nodes) found.push_back(Mutable(node, graph));
  return found;
}

// What a stage consists of once it is rewritten.
struct RewrittenStage {
  std::vector<Node*> puts;
  // Null if nothing was added to a stage of tf.staged.
  Node* take = nullptr;
  // What the stage runs first.
  std::vector<Node*> first_nodes;
};

Status MakeStage(const PlannedStage& stage, const RewriteOptions& options,
                 const std::vector<PartialTensorShape>& shapes, Graph* graph,
                 RewrittenStage* made) {
  CpuCopies copies;
  RegionClones clones;
  TF_RETURN_IF_ERROR(CloneRegion(
      stage, /*put=*/nullptr,
      {stage.NodeName(kCloneScope), options.stream_id, options.on_cpu}, &copies,
      graph, &clones));
  made->first_nodes = clones.roots;
  made->puts.push_back(nullptr);
  return MakeBufferNodes(stage,
                         {ContainerOfRegion(stage, options.session),
                          options.capacity, options.timeout_millis},
                         clones, shapes, graph, &made->puts.back(),
                         &made->take);
}

// Adds what SmartStage found to a stage of tf.staged.
Status ExtendStage(const PlannedStage& stage, const RewriteOptions& options,
                   const std::vector<PartialTensorShape>& shapes, Graph* graph,
                   RewrittenStage* extended) {
  const std::string container = ContainerOfRegion(stage, options.session);
  CpuCopies copies;
  for (size_t i = 0; i < stage.puts.size(); ++i) {
    // Sources of one stage are cloned apart, as each is run by itself.
    const std::string scope = stage.NodeName(
        i == 0 ? kCloneScope : absl::StrCat(kCloneScope, "_", i));
    RegionClones clones;
    TF_RETURN_IF_ERROR(CloneRegion(stage, stage.puts[i],
                                   {scope, /*stream_id=*/0, options.on_cpu},
                                   &copies, graph, &clones));
    extended->puts.push_back(nullptr);
    TF_RETURN_IF_ERROR(ExtendPut(Mutable(stage.puts[i], graph), container,
                                 clones, graph, &extended->puts.back()));
  }
  return ExtendTake(stage, container, shapes, graph, &extended->take);
}

Status RewriteStage(const PlannedStage& stage, const RewriteOptions& options,
                    Graph* graph, RewrittenStage* rewritten) {
  if (options.on_cpu) MoveToCpu(stage.puts, graph);
  rewritten->first_nodes = Mutable(stage.gated_sources, graph);
  if (stage.region == nullptr) {
    rewritten->puts = Mutable(stage.puts, graph);
    if (!options.session.empty()) MoveToSession(stage, options.session, graph);
    return OkStatus();
  }
  const std::vector<PartialTensorShape> shapes =
      BoundaryShapes(*graph, *stage.region);
  TF_RETURN_IF_ERROR(stage.by_hand()
                         ? ExtendStage(stage, options, shapes, graph, rewritten)
                         : MakeStage(stage, options, shapes, graph, rewritten));
  return ReplaceByStandIns(stage, shapes, rewritten->take, graph);
}

// Checks that the nodes from `first_new_id` on have names of their own. A node
// that the graph got after its stages began to run may have the name of one
// that SmartStage makes.
Status CheckNamesAreNew(int first_new_id, const Graph& graph) {
  absl::flat_hash_set<absl::string_view> made;
  for (const Node* node : graph.op_nodes()) {
    if (node->id() >= first_new_id) made.insert(node->name());
  }
  for (const Node* node : graph.op_nodes()) {
    if (node->id() >= first_new_id || !made.contains(node->name())) continue;
    return errors::AlreadyExists(
        "Node '", node->name(),
        "' has the name of a node that SmartStage makes for a stage of this "
        "session. Nodes that are added once the stages run need other names: "
        "give the new ones another name scope, or another name to "
        "tf.SmartStageOptions.");
  }
  return OkStatus();
}

// Checks that no Put of `puts` waits, through any number of nodes, for a Take
// of `takes`: a stage must not wait for the step that waits for it.
Status CheckNoPutNeedsTake(const std::vector<Node*>& puts,
                           const absl::flat_hash_set<const Node*>& takes,
                           const Graph& graph) {
  const Node* needed = nullptr;
  ReverseDFSFrom(graph, std::vector<const Node*>(puts.begin(), puts.end()),
                 [&](const Node* node) {
                   if (takes.contains(node)) needed = node;
                 },
                 /*leave=*/{});
  if (needed == nullptr) return OkStatus();
  return errors::Internal("SmartStage made a stage that waits for itself, by '",
                          needed->name(),
                          "'. Nothing is wrong with the graph; please report "
                          "this, and turn do_smart_stage off meanwhile.");
}

}  // namespace

Status RewriteStages(const StagePlan& plan, const RewriteOptions& options,
                     Graph* graph) {
  const int first_new_id = graph->num_node_ids();
  std::vector<Node*> puts;
  absl::flat_hash_set<const Node*> takes;
  std::map<std::string, Node*> restarts;
  for (const PlannedStage& stage : plan.stages()) {
    RewrittenStage rewritten;
    TF_RETURN_IF_ERROR(RewriteStage(stage, options, graph, &rewritten));
    if (rewritten.take != nullptr) {
      puts.insert(puts.end(), rewritten.puts.begin(), rewritten.puts.end());
      takes.insert(rewritten.take);
    }
    TF_RETURN_IF_ERROR(AddRestart(
        stage.name, *rewritten.puts.front(), rewritten.first_nodes,
        Mutable(stage.initializers, graph), graph, &restarts[stage.name]));
  }
  for (const PlannedStage& stage : plan.stages()) {
    for (const std::string& before : stage.stages_before) {
      // A stage that waits for records has to come to its Begin first.
      if (Node* restart = restarts[before]; restart != nullptr) {
        graph->AddControlEdge(restarts[stage.name], restart);
      }
    }
  }
  TF_RETURN_IF_ERROR(GuardPacksOfTaken(graph));
  FixupSourceAndSinkEdges(graph);
  TF_RETURN_IF_ERROR(CheckNamesAreNew(first_new_id, *graph));
  return CheckNoPutNeedsTake(puts, takes, *graph);
}

}  // namespace staging
}  // namespace tensorflow
