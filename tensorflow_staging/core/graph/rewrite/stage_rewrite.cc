// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"
#include "tensorflow_staging/core/graph/rewrite/pack_guard.h"
#include "tensorflow_staging/core/graph/rewrite/puts_and_takes.h"
#include "tensorflow_staging/core/graph/rewrite/region_clones.h"
#include "tensorflow_staging/core/graph/rewrite/region_stand_ins.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kCloneScope[] = "staged";

struct RewrittenStage {
  std::vector<Node*> puts;
  // Null if the stage is a manual stage to which nothing was added.
  Node* take = nullptr;
};

// Whether a stage delivers its records to where the step uses them.
bool Delivers(const PlannedStage& stage, const RewriteOptions& options) {
  if (options.on_cpu.has_value()) return *options.on_cpu;
  std::vector<const Node*> nodes = stage.Nodes();
  absl::c_copy(stage.puts, std::back_inserter(nodes));
  if (stage.region != nullptr) {
    absl::c_copy(stage.region->nodes, std::back_inserter(nodes));
  }
  const bool has_stream = !stage.is_manual() && options.buffer.stream_id != 0;
  return !has_stream && AskForNoAccelerator(nodes);
}

// Builds a stage that SmartStage found.
Status AddStage(const PlannedStage& stage, const RewriteOptions& options,
                const std::vector<PartialTensorShape>& shapes, bool on_cpu,
                Graph* graph, RewrittenStage* added) {
  CpuCopies copies;
  RegionClones clones;
  TF_RETURN_IF_ERROR(CloneRegion(stage, /*put=*/nullptr,
                                 {stage.NodeName(kCloneScope), on_cpu}, &copies,
                                 graph, &clones));
  added->puts.push_back(nullptr);
  return AddBufferNodes(stage, ContainerOfRegion(stage, options.session),
                        options.buffer, clones, shapes, graph,
                        &added->puts.back(), &added->take);
}

// Adds the region that SmartStage found to a manual stage.
Status ExtendStage(const PlannedStage& stage, const RewriteOptions& options,
                   const std::vector<PartialTensorShape>& shapes, bool on_cpu,
                   Graph* graph, RewrittenStage* extended) {
  const std::string container = ContainerOfRegion(stage, options.session);
  CpuCopies copies;
  extended->puts.resize(stage.puts.size());
  for (size_t i = 0; i < stage.puts.size(); ++i) {
    const std::string scope = stage.NodeName(
        i == 0 ? kCloneScope : absl::StrCat(kCloneScope, "_", i));
    const CloneOptions clone = {scope, on_cpu};
    RegionClones clones;
    TF_RETURN_IF_ERROR(
        CloneRegion(stage, stage.puts[i], clone, &copies, graph, &clones));
    TF_RETURN_IF_ERROR(ExtendPut(Mutable(stage.puts[i], graph), container,
                                 clones, graph, &extended->puts[i]));
  }
  return ExtendTake(stage, absl::StrCat(stage.take->name(), "/record"),
                    container, shapes, graph, &extended->take);
}

void MarkDelivers(const std::vector<Node*>& puts) {
  for (Node* put : puts) put->AddAttr(kDeliversAttr, true);
}

Status RewriteStage(const PlannedStage& stage, const RewriteOptions& options,
                    const absl::flat_hash_set<std::string>& colocated_with,
                    bool delivers, Graph* graph, RewrittenStage* rewritten) {
  const bool on_cpu = delivers && !options.with_variables;
  if (on_cpu) MoveToCpu(stage.puts, graph);
  if (stage.region == nullptr) {
    rewritten->puts = Mutable(stage.puts, graph);
    if (delivers) MarkDelivers(rewritten->puts);
    if (!options.session.empty()) MoveToSession(stage, options.session, graph);
    return OkStatus();
  }
  const std::vector<PartialTensorShape> shapes =
      options.infer_shapes
          ? BoundaryShapes(*graph, *stage.region)
          : std::vector<PartialTensorShape>(stage.region->boundary.size());
  const auto build = stage.is_manual() ? ExtendStage : AddStage;
  TF_RETURN_IF_ERROR(build(stage, options, shapes, on_cpu, graph, rewritten));
  if (delivers) MarkDelivers(rewritten->puts);
  return ReplaceByStandIns(stage, colocated_with, shapes, options.beside_take,
                           rewritten->take, graph);
}

// Checks that no Put of `puts` depends, directly or indirectly, on a Take of
// `takes`: a stage must not wait for the step that waits for it.
Status CheckNoPutNeedsTake(const std::vector<Node*>& puts,
                           const absl::flat_hash_set<const Node*>& takes) {
  const std::vector<const Node*> nodes =
      WithAncestors({puts.begin(), puts.end()});
  const auto needed = absl::c_find_if(
      nodes, [&takes](const Node* node) { return takes.contains(node); });
  if (needed == nodes.end()) return OkStatus();
  return errors::Internal(
      "SmartStage built a stage that waits for itself, through '",
      (*needed)->name(),
      "'. The graph is correct, SmartStage is not: please report this error, "
      "and turn do_smart_stage off until it is fixed.");
}

}  // namespace

Status RewriteStages(const StagePlan& plan, const RewriteOptions& options,
                     Graph* graph) {
  std::vector<const StagedRegion*> regions;
  for (const PlannedStage& stage : plan.stages()) {
    if (stage.region != nullptr) regions.push_back(stage.region);
  }
  const absl::flat_hash_set<std::string> colocated_with =
      NodesWithColocatedUsers(regions, *graph);
  // Says what the nodes ask for before the rewrite.
  std::vector<bool> delivers;
  for (const PlannedStage& stage : plan.stages()) {
    delivers.push_back(Delivers(stage, options));
  }
  std::vector<Node*> puts;
  absl::flat_hash_set<const Node*> takes;
  for (size_t i = 0; i < plan.stages().size(); ++i) {
    const PlannedStage& stage = plan.stages()[i];
    RewrittenStage rewritten;
    TF_RETURN_IF_ERROR(RewriteStage(stage, options, colocated_with, delivers[i],
                                    graph, &rewritten));
    for (Node* put : rewritten.puts) {
      if (stage.check_puts) TF_RETURN_IF_ERROR(AddPutCheck(put, graph));
    }
    if (rewritten.take != nullptr) {
      puts.insert(puts.end(), rewritten.puts.begin(), rewritten.puts.end());
      takes.insert(rewritten.take);
    }
  }
  TF_RETURN_IF_ERROR(GuardPacksOfTakenTensors(graph));
  FixupSourceAndSinkEdges(graph);
  TF_RETURN_IF_ERROR(CheckNamesAreUnique(*graph));
  return CheckNoPutNeedsTake(puts, takes);
}

}  // namespace staging
}  // namespace tensorflow
