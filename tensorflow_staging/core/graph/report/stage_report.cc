// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/stage_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"

namespace tensorflow {
namespace staging {
namespace {

class Reporter {
 public:
  Reporter(const Graph& graph, const StagePlan& plan)
      : graph_(graph), plan_(plan), partition_(*plan.partition()) {}

  StageReport Run() {
    FindSides();
    for (const PlannedStage& stage : plan_.stages()) AddStage(stage);
    AddUnstagedSources();
    AddReasons();
    AddGraph();
    return std::move(report_);
  }

 private:
  StageReport::Outside Outside(const Node& node) const {
    return {node.name(), node.type_string(),
            ReasonText(node, partition_.WhyNot(node))};
  }

  bool IsStaged(const Node& node) const { return side_[node.id()] >= 0; }

  void FindSides() {
    side_.assign(graph_.num_node_ids(), StageReport::kStep);
    for (const Node* node : graph_.op_nodes()) {
      if (partition_.WhyNot(*node).reason == StepReason::kNoSource) {
        side_[node->id()] = StageReport::kShared;
      }
    }
    for (size_t i = 0; i < plan_.stages().size(); ++i) {
      const PlannedStage& stage = plan_.stages()[i];
      if (stage.is_manual()) AssignManualStage(stage, i);
      if (stage.region == nullptr) continue;
      for (const Node* node : stage.region->nodes) side_[node->id()] = i;
    }
  }

  // Returns whether a node is a variable or a table, and not one that depends
  // on it.
  bool HoldsState(const Node& node) const {
    const LocatedReason why = partition_.WhyNot(node);
    return why.node == &node && (why.reason == StepReason::kVariable ||
                                 why.reason == StepReason::kTable);
  }

  // Assigns to `stage` its Puts, its Take and all nodes that lead to its Puts,
  // except shared nodes, nodes that hold state and nodes of other stages.
  void AssignManualStage(const PlannedStage& stage, int index) {
    for (const Node* node : stage.control_ops) {
      side_[node->id()] = StageReport::kControl;
    }
    side_[stage.take->id()] = index;
    std::vector<const Node*> found = stage.puts;
    for (const Node* node : found) side_[node->id()] = index;
    while (!found.empty()) {
      const Node* node = found.back();
      found.pop_back();
      for (const Edge* edge : node->in_edges()) {
        const Node* input = edge->src();
        if (!input->IsOp() || IsBufferTake(*input) || HoldsState(*input) ||
            side_[input->id()] != StageReport::kStep) {
          continue;
        }
        side_[input->id()] = index;
        found.push_back(input);
      }
    }
  }

  void AddStage(const PlannedStage& planned) {
    // The record of a stage without a region consists of the Take's outputs.
    StagedRegion take;
    if (planned.region == nullptr) {
      take.sources = take.nodes = {planned.take};
      for (int i = 0; i < planned.take->num_outputs(); ++i) {
        take.boundary.push_back({planned.take, i});
      }
    }
    const StagedRegion& region = planned.region ? *planned.region : take;
    StageReport::Stage stage;
    stage.name = planned.name;
    stage.by_hand = planned.is_manual();
    for (const Node* source : region.sources) {
      stage.sources.push_back(source->name());
    }
    if (planned.region != nullptr) {
      for (const Node* node : region.nodes) {
        if (node != planned.take) stage.nodes.push_back(node->name());
      }
    }
    const std::vector<PartialTensorShape> shapes =
        BoundaryShapes(graph_, region);
    for (size_t i = 0; i < region.boundary.size(); ++i) {
      const StagedTensor& tensor = region.boundary[i];
      auto& tensors = tensor.only_if_asked ? stage.elements : stage.boundary;
      tensors.push_back(
          {tensor.name(), tensor.node->output_type(tensor.index), shapes[i]});
    }
    // By node id, which is the order of the nodes in the GraphDef.
    std::map<int, const Node*> outside;
    for (const Node* node : region.nodes) {
      for (const Edge* edge : node->out_edges()) {
        const Node* user = edge->dst();
        if (user->IsOp() && !IsStaged(*user)) outside[user->id()] = user;
      }
    }
    for (const auto& [id, node] : outside) {
      stage.outside.push_back(Outside(*node));
    }
    report_.stages.push_back(std::move(stage));
  }

  void AddUnstagedSources() {
    NodeRoles roles(graph_);
    for (const Node* node : graph_.op_nodes()) {
      if (!IsStaged(*node) && roles.Find(*node).role == NodeRole::kSource) {
        report_.unstaged_sources.push_back(Outside(*node));
      }
    }
    std::sort(report_.unstaged_sources.begin(), report_.unstaged_sources.end(),
              [](const StageReport::Outside& a, const StageReport::Outside& b) {
                return a.name < b.name;
              });
  }

  void AddReasons() {
    enum class About { kNothing, kItself, kAnother };
    std::map<std::pair<StepReason, About>, StageReport::Reason> found;
    absl::flat_hash_set<std::pair<StepReason, const Node*>> seen;
    for (const Node* node : graph_.op_nodes()) {
      if (IsStaged(*node) || side_[node->id()] == StageReport::kControl) {
        continue;
      }
      const LocatedReason why = partition_.WhyNot(*node);
      const About about = why.node == nullptr ? About::kNothing
                          : why.node == node  ? About::kItself
                                              : About::kAnother;
      StageReport::Reason& reason = found[{why.reason, about}];
      if (++reason.nodes == 1) reason.example = Outside(*node);
      if (about == About::kAnother &&
          seen.insert({why.reason, why.node}).second) {
        reason.about.push_back(why.node->name());
      }
    }
    for (auto& [key, reason] : found) {
      report_.reasons.push_back(std::move(reason));
    }
    std::sort(report_.reasons.begin(), report_.reasons.end(),
              [](const StageReport::Reason& a, const StageReport::Reason& b) {
                return std::tie(b.nodes, a.example.why) <
                       std::tie(a.nodes, b.example.why);
              });
  }

  void AddGraph() {
    std::vector<int> index(graph_.num_node_ids(), -1);
    for (const Node* node : graph_.op_nodes()) {
      index[node->id()] = report_.nodes.size();
      report_.nodes.push_back(
          {node->name(), node->type_string(), side_[node->id()]});
    }
    for (const Node* node : graph_.op_nodes()) {
      for (const Edge* edge : node->out_edges()) {
        if (!edge->dst()->IsOp()) continue;
        report_.edges.push_back(
            {index[node->id()], edge->src_output(), index[edge->dst()->id()]});
      }
    }
    std::sort(
        report_.edges.begin(), report_.edges.end(),
        [](const StageReport::GraphEdge& a, const StageReport::GraphEdge& b) {
          return std::tie(a.src, a.src_output, a.dst) <
                 std::tie(b.src, b.src_output, b.dst);
        });
  }

  const Graph& graph_;
  const StagePlan& plan_;
  const StagePartition& partition_;
  // By node id: the index of a stage, kStep, kShared or kControl.
  std::vector<int> side_;
  StageReport report_;
};

}  // namespace

StageReport ReportStages(const Graph& graph, const std::string& name,
                         RecordContent content) {
  const StagePlan plan(graph, /*smart_stage=*/true, name, /*counts=*/nullptr,
                       content);
  return Reporter(graph, plan).Run();
}

}  // namespace staging
}  // namespace tensorflow
