// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/partition/manual_region.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/puts_and_takes.h"
#include "tensorflow_staging/core/graph/rewrite/region_clones.h"
#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

// Marks what is drawn to compute what stages feed. It is drawn in a run before
// the stage's own, so that a step which also uses it would draw again.
void MarkFeeds(const std::vector<PlannedStage>& stages, Graph* graph) {
  for (const PlannedStage& stage : stages) {
    const bool has_feeds =
        absl::c_any_of(WithAncestors(stage.puts), [](const Node* node) {
          return absl::c_any_of(node->in_edges(), [](const Edge* edge) {
            return IsFedByStages(*edge);
          });
        });
    if (has_feeds) MarkHasFeeds(Mutable(stage.take, graph));
  }
  std::vector<const Node*> values;
  for (const Node* node : graph->op_nodes()) {
    if (IsValueOfFeed(*node)) values.push_back(node);
  }
  NodeRoles roles(*graph);
  for (const Node* node : WithAncestors(values)) {
    if (IsDrawn(*node, &roles)) MarkReadForFeeds(Mutable(node, graph));
  }
}

// Checks that no run that computes what a stage feeds needs records of `stage`.
// It comes before the stage's own run, and would draw another element.
Status CheckFeeds(const PlannedStage& stage, const StagedRegion& region,
                  const Graph& graph) {
  const std::vector<const Node*> nodes = WithDescendants(region.nodes);
  const auto it = absl::c_find_if(
      nodes, [](const Node* node) { return IsValueOfFeed(*node); });
  if (it == nodes.end()) return OkStatus();
  const Node* const value = *it;
  return errors::InvalidArgument(
      "A feed_dict of tf.staged feeds '", value->name(), "' (",
      value->type_string(), "), which depends on '",
      region.sources.front()->name(), "' (",
      region.sources.front()->type_string(), "). Stage '", stage.name,
      "' computes that, too, and would get another element. Compute the "
      "features of the stage from the fed tensors alone, or what is fed from "
      "the tensors that tf.staged returns.");
}

// Lets what takes the record wait, instead of `take`, for those nodes of the
// step that depend on `region`: they use the record themselves. The region has
// run when the record is there.
void MoveWaits(const StagedRegion& region, Node* take, Graph* graph) {
  const NodeSet nodes(region.nodes.begin(), region.nodes.end());
  const std::vector<const Edge*> waits(take->in_edges().begin(),
                                       take->in_edges().end());
  for (const Edge* wait : waits) {
    Node* const awaited = wait->src();
    if (absl::c_none_of(WithAncestors({awaited}), [&nodes](const Node* node) {
          return nodes.contains(node);
        })) {
      continue;
    }
    graph->RemoveEdge(wait);
    if (nodes.contains(awaited)) continue;
    const std::vector<Node*> users(take->out_nodes().begin(),
                                   take->out_nodes().end());
    for (Node* user : users) {
      if (user->IsOp()) graph->AddControlEdge(awaited, user);
    }
  }
}

// Lets the ops of variables and other resources wait for nothing in the region:
// both sides use them, and they do nothing that could come too early.
void FreeHandleOps(const StagedRegion& region, Graph* graph) {
  const NodeSet nodes(region.nodes.begin(), region.nodes.end());
  std::vector<const Edge*> waits;
  for (const Node* node : region.nodes) {
    absl::c_copy_if(node->out_edges(), std::back_inserter(waits),
                    [&nodes](const Edge* edge) {
                      const Node& user = *edge->dst();
                      return user.IsOp() && IsHandleOp(user) &&
                             !nodes.contains(&user);
                    });
  }
  for (const Edge* wait : waits) graph->RemoveEdge(wait);
}

// Lets `put` put what the clones of the region yield.
void UseClones(const RegionClones& clones, Node* put, Graph* graph) {
  const std::vector<const Edge*> edges(put->in_edges().begin(),
                                       put->in_edges().end());
  for (const Edge* edge : edges) {
    const auto clone = clones.of.find(edge->src());
    if (clone != clones.of.end()) {
      MoveEdge(edge, clone->second, edge->src_output(), graph);
    }
  }
}

// The static shapes of the extended record.
std::vector<PartialTensorShape> Shapes(const StagedRegion& region,
                                       const Node& take,
                                       const RewriteOptions& options,
                                       const Graph& graph) {
  if (region.boundary.empty()) return {};
  std::vector<PartialTensorShape> shapes =
      options.infer_shapes
          ? BoundaryShapes(graph, region)
          : std::vector<PartialTensorShape>(region.boundary.size());
  // What tf.staged has found, with Python's knowledge of constants.
  std::vector<PartialTensorShape> known;
  if (GetNodeAttr(take.attrs(), kShapesAttr, &known).ok()) {
    std::copy_n(known.begin(), std::min(known.size(), shapes.size()),
                shapes.begin());
  }
  return shapes;
}

// Replaces `*take` by a Take of the same name for the longer record.
Status ReplaceTake(const PlannedStage& stage, const std::string& container,
                   const std::vector<PartialTensorShape>& shapes, Graph* graph,
                   Node** take) {
  Node* const old_take = *take;
  TF_RETURN_IF_ERROR(
      ExtendTake(stage, old_take->name(), container, shapes, graph, take));
  MoveUsers(old_take, *take, graph);
  graph->RemoveNode(old_take);
  return OkStatus();
}

Status AlignStage(PlannedStage stage, const NodeFilter& counts,
                  RecordContent content, const RewriteOptions& options,
                  Graph* graph, std::vector<LateStage>* late) {
  Node* take = Mutable(stage.take, graph);
  // The kernels report records of other types.
  if (stage.puts.front()->input_types() != take->output_types()) {
    return OkStatus();
  }
  const StagedRegion region =
      FindManualRegion(*graph, stage.puts, *take, counts, content);
  if (region.nodes.empty()) return OkStatus();
  // A stage that is added later changes no region of running stages.
  if (!counts(*take)) {
    const auto shared = absl::c_find_if(
        region.nodes, [&](const Node* node) { return counts(*node); });
    if (shared != region.nodes.end()) {
      if (late != nullptr) late->push_back({stage.name, (*shared)->name()});
      return OkStatus();
    }
  }
  TF_RETURN_IF_ERROR(CheckFeeds(stage, region, *graph));
  stage.region = &region;
  FreeHandleOps(region, graph);
  MoveWaits(region, take, graph);
  const std::vector<PartialTensorShape> shapes =
      Shapes(region, *take, options, *graph);
  // The region ends before the Take.
  PlannedStage before = stage;
  before.take = nullptr;
  const absl::flat_hash_set<std::string> colocated_with =
      NodesWithColocatedUsers({&region}, *graph);
  CpuCopies copies;
  RegionClones clones;
  TF_RETURN_IF_ERROR(CloneRegion(before, /*put=*/nullptr,
                                 {stage.NodeName(kManualRegionScope)}, &copies,
                                 graph, &clones));
  for (Node* put : Mutable(stage.puts, graph)) UseClones(clones, put, graph);
  if (static_cast<int>(region.boundary.size()) > take->num_outputs()) {
    std::string container;
    TF_RETURN_IF_ERROR(GetNodeAttr(take->attrs(), kContainerAttr, &container));
    if (container.empty()) {
      container = ContainerOfRegion(stage, options.session);
    }
    Node* put = nullptr;
    TF_RETURN_IF_ERROR(ExtendPut(Mutable(stage.puts.front(), graph), container,
                                 clones, graph, &put));
    TF_RETURN_IF_ERROR(ReplaceTake(stage, container, shapes, graph, &take));
  }
  return ReplaceByStandIns(before, colocated_with, shapes,
                           /*beside_take=*/false, take, graph);
}

// Returns the position of the first stage, of those that do not take records of
// another one of `stages`. If all do, the graph has a cycle; returns the first.
size_t NextStage(const std::vector<PlannedStage>& stages, const Graph& graph) {
  NodeSet takes;
  for (const PlannedStage& stage : stages) takes.insert(stage.take);
  for (size_t i = 0; i < stages.size(); ++i) {
    if (absl::c_none_of(
            WithAncestors(stages[i].puts),
            [&takes](const Node* node) { return takes.contains(node); })) {
      return i;
    }
  }
  return 0;
}

}  // namespace

Status AlignStages(const NodeFilter& counts, RecordContent content,
                   const RewriteOptions& options, Graph* graph,
                   std::vector<LateStage>* late) {
  if (absl::c_none_of(graph->op_nodes(),
                      [](const Node* node) { return IsBufferPut(*node); })) {
    return OkStatus();
  }
  const StagePlan plan(*graph, /*smart_stage=*/false, /*name=*/"", counts);
  std::vector<PlannedStage> stages = plan.stages();
  absl::c_sort(stages, [](const PlannedStage& a, const PlannedStage& b) {
    return a.take->id() < b.take->id();
  });
  MarkFeeds(stages, graph);
  while (!stages.empty()) {
    const size_t next = NextStage(stages, *graph);
    // Aligning a stage replaces no op of another stage.
    const PlannedStage stage = std::move(stages[next]);
    stages.erase(stages.begin() + next);
    TF_RETURN_IF_ERROR(
        AlignStage(stage, counts, content, options, graph, late));
  }
  FixupSourceAndSinkEdges(graph);
  return CheckNamesAreUnique(*graph);
}

}  // namespace staging
}  // namespace tensorflow
