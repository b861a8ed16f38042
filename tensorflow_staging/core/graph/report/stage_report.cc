// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/stage_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/partition/manual_region.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/plan/stage_reads.h"
#include "tensorflow_staging/core/graph/report/node_sides.h"
#include "tensorflow_staging/core/graph/report/planned_lookups.h"

namespace tensorflow {
namespace staging {
namespace {

std::vector<std::string> NamesOf(const std::vector<const Node*>& nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.push_back(node->name());
  return names;
}

StageReport::Outside Outside(const Node& node, const NodeSides& sides) {
  const NodeSides::Why& why = sides.WhyNot(node);
  return {node.name(), node.type_string(), ReasonText(*why.node, why.reason)};
}

// Finds what a report says of the stages.
class StagesReporter {
 public:
  // `lookups` may be null.
  StagesReporter(const Graph& graph, const StagePlan& plan,
                 const PlannedLookups* lookups, const ReportOptions& options,
                 const NodeSides& sides)
      : graph_(graph),
        plan_(plan),
        lookups_(lookups),
        content_(options.content),
        stale_steps_(options.stale_steps),
        sides_(sides) {}

  std::vector<StageReport::Stage> Find() const {
    std::vector<StageReport::Stage> stages;
    const std::vector<StageReads> reads = FindStageReads(graph_, plan_);
    for (size_t i = 0; i < reads.size(); ++i) {
      stages.push_back(StageOf(plan_.stages()[i], reads[i]));
    }
    if (lookups_ != nullptr) {
      for (const PlannedStage& stage : lookups_->plan->stages()) {
        stages.push_back(StageOfLookups(stage));
      }
    }
    return stages;
  }

 private:
  // Returns the record of a manual stage to which SmartStage adds nothing: the
  // Take's outputs, and what the step uses of the stage's sources beside it.
  StagedRegion RecordOf(const PlannedStage& planned) const {
    StagedRegion record;
    record.sources = record.nodes = {planned.take};
    const int outputs = planned.take->num_outputs();
    for (int i = 0; i < outputs; ++i) {
      record.boundary.push_back({planned.take, i});
    }
    const StagedRegion manual = FindManualRegion(
        graph_, planned.puts, *planned.take, NodeFilter(), content_);
    for (size_t i = outputs; i < manual.boundary.size(); ++i) {
      record.boundary.push_back(manual.boundary[i]);
    }
    return record;
  }

  // Returns what stages of both kinds have: a name, sources, and the tensors of
  // their records, as `name_of` names them.
  static StageReport::Stage WithRecord(
      const PlannedStage& planned, const Graph& graph,
      const StagedRegion& region,
      absl::FunctionRef<std::string(const StagedTensor&)> name_of) {
    StageReport::Stage stage;
    stage.name = planned.name;
    stage.sources = NamesOf(region.sources);
    const std::vector<PartialTensorShape> shapes =
        BoundaryShapes(graph, region);
    for (size_t i = 0; i < region.boundary.size(); ++i) {
      const StagedTensor& tensor = region.boundary[i];
      auto& tensors = tensor.only_if_asked ? stage.elements : stage.boundary;
      tensors.push_back(
          {name_of(tensor), tensor.node->output_type(tensor.index), shapes[i]});
    }
    return stage;
  }

  StageReport::Stage StageOf(const PlannedStage& planned,
                             const StageReads& reads) const {
    const StagedRegion take =
        planned.region == nullptr ? RecordOf(planned) : StagedRegion();
    const StagedRegion& region = planned.region ? *planned.region : take;
    StageReport::Stage stage =
        WithRecord(planned, graph_, region, std::mem_fn(&StagedTensor::name));
    stage.by_hand = planned.is_manual();
    for (const StageReads::Iterator& read : reads.iterators) {
      stage.iterators.push_back({read.iterator->name(),
                                 read.iterator->type_string(),
                                 NamesOf(read.other_readers)});
    }
    for (const StageReads::State& state : reads.changing) {
      stage.changing.push_back({state.owner->name(), state.owner->type_string(),
                                NamesOf(state.changers)});
    }
    if (planned.region != nullptr) {
      for (const Node* node : region.nodes) {
        if (node != planned.take) stage.nodes.push_back(node->name());
      }
    }
    // By node id, which is the order of the nodes in the GraphDef.
    std::map<int, const Node*> outside;
    for (const Node* node : region.nodes) {
      for (const Edge* edge : node->out_edges()) {
        const Node* user = edge->dst();
        if (user->IsOp() && !sides_.IsStaged(*user)) outside[user->id()] = user;
      }
    }
    for (const auto& [id, node] : outside) {
      stage.outside.push_back(Outside(*node, sides_));
    }
    return stage;
  }

  StageReport::Stage StageOfLookups(const PlannedStage& planned) const {
    const StagedRegion& region = *planned.region;
    StageReport::Stage stage = WithRecord(
        planned, lookups_->graph, region,
        [this](const StagedTensor& tensor) { return UsersName(tensor); });
    stage.stale_steps = stale_steps_;
    absl::flat_hash_set<absl::string_view> users;
    std::set<std::string> variables;
    for (const Node* node : region.nodes) {
      if (!IsBufferTake(*node) && !IsStandIn(*node)) {
        stage.nodes.push_back(node->name());
      }
      if (lookups_->stale->IsLookup(*node)) {
        variables.insert(lookups_->stale->Find(*node)->variable->name());
      }
      for (const Edge* edge : node->out_edges()) {
        users.insert(edge->dst()->name());
      }
    }
    stage.variables.assign(variables.begin(), variables.end());
    for (const Node* node : graph_.op_nodes()) {
      if (!sides_.IsStaged(*node) && users.contains(node->name())) {
        stage.outside.push_back(Outside(*node, sides_));
      }
    }
    return stage;
  }

  // Returns the name that a tensor of a record has in the graph of the user, if
  // it is from the record of an earlier stage.
  std::string UsersName(const StagedTensor& tensor) const {
    std::string stage_name;
    if (IsBufferTake(*tensor.node) &&
        TryGetNodeAttr(tensor.node->attrs(), kSharedNameAttr, &stage_name)) {
      for (const PlannedStage& stage : plan_.stages()) {
        if (stage.name == stage_name && stage.region != nullptr) {
          return stage.region->boundary[tensor.index].name();
        }
      }
    }
    return tensor.name();
  }

  const Graph& graph_;
  const StagePlan& plan_;
  const PlannedLookups* const lookups_;
  const RecordContent content_;
  const int64_t stale_steps_;
  const NodeSides& sides_;
};

std::vector<StageReport::Outside> UnstagedSources(const Graph& graph,
                                                  const NodeSides& sides) {
  std::vector<StageReport::Outside> sources;
  for (const Node* node : graph.op_nodes()) {
    if (!sides.IsStaged(*node) && IsSourceOp(*node)) {
      sources.push_back(Outside(*node, sides));
    }
  }
  absl::c_sort(sources,
               [](const StageReport::Outside& a,
                  const StageReport::Outside& b) { return a.name < b.name; });
  return sources;
}

// Adds the nodes of the graph, and the reasons that they have in common.
void AddNodes(const Graph& graph, const NodeSides& sides, StageReport* report) {
  NodeRoles roles(graph);
  absl::flat_hash_map<absl::string_view, int> index_by_name;
  for (const Node* node : graph.op_nodes()) {
    index_by_name[node->name()] = report->nodes.size();
    StageReport::GraphNode found;
    found.name = node->name();
    found.op = node->type_string();
    found.side = sides.Of(*node);
    found.step_only = roles.Find(*node).role == NodeRole::kStepOnly;
    report->nodes.push_back(std::move(found));
  }
  // By reason and what it is about: null for nothing, and for the node itself
  // the graph's source node, which no reason is about.
  std::map<std::pair<StepReason, const Node*>, int> found;
  for (const Node* node : graph.op_nodes()) {
    if (sides.IsStaged(*node)) continue;
    const NodeSides::Why& why = sides.WhyNot(*node);
    const Node* about = why.reason.node;
    const bool itself = about != nullptr && about == why.node;
    const auto [it, inserted] = found.try_emplace(
        {why.reason.reason, itself ? graph.source_node() : about},
        report->whys.size());
    report->nodes[index_by_name[node->name()]].why = it->second;
    if (!inserted) continue;
    StageReport::Why shown;
    shown.text = ReasonText(*why.node, why.reason);
    shown.advice = AdviceText(why.reason.reason);
    if (itself) {
      shown.about = StageReport::Why::kItself;
    } else if (about != nullptr) {
      const auto named = index_by_name.find(about->name());
      if (named != index_by_name.end()) shown.about = named->second;
    }
    report->whys.push_back(std::move(shown));
  }
}

// Counts the nodes of the step and the shared ones by reason.
std::vector<StageReport::Reason> Reasons(const Graph& graph,
                                         const NodeSides& sides) {
  enum class About { kNothing, kItself, kAnother };
  std::map<std::pair<StepReason, About>, StageReport::Reason> found;
  absl::flat_hash_set<std::pair<StepReason, const Node*>> seen;
  for (const Node* node : graph.op_nodes()) {
    const int side = sides.Of(*node);
    if (side != StageReport::kStep && side != StageReport::kShared) continue;
    const NodeSides::Why& why = sides.WhyNot(*node);
    const Node* other = why.reason.node;
    const About about = other == nullptr    ? About::kNothing
                        : other == why.node ? About::kItself
                                            : About::kAnother;
    StageReport::Reason& reason = found[{why.reason.reason, about}];
    if (++reason.nodes == 1) reason.example = Outside(*node, sides);
    if (about == About::kAnother &&
        seen.insert({why.reason.reason, other}).second) {
      reason.about.push_back(other->name());
    }
  }
  std::vector<StageReport::Reason> reasons;
  for (auto& [key, reason] : found) reasons.push_back(std::move(reason));
  absl::c_sort(reasons, [](const StageReport::Reason& a,
                           const StageReport::Reason& b) {
    return std::tie(b.nodes, a.example.why) < std::tie(a.nodes, b.example.why);
  });
  return reasons;
}

void AddEdges(const Graph& graph, StageReport* report) {
  std::vector<int> index(graph.num_node_ids(), -1);
  int nodes = 0;
  for (const Node* node : graph.op_nodes()) index[node->id()] = nodes++;
  for (const Node* node : graph.op_nodes()) {
    for (const Edge* edge : node->out_edges()) {
      if (!edge->dst()->IsOp()) continue;
      report->edges.push_back(
          {index[node->id()], edge->src_output(), index[edge->dst()->id()]});
    }
  }
  absl::c_sort(report->edges, [](const StageReport::GraphEdge& a,
                                 const StageReport::GraphEdge& b) {
    return std::tie(a.src, a.src_output, a.dst) <
           std::tie(b.src, b.src_output, b.dst);
  });
}

}  // namespace

Status ReportStages(const Graph& graph, const ReportOptions& options,
                    StageReport* report) {
  const AlignedWith aligned = AlignmentOfSmartStage(
      /*can_unstage=*/true, /*stages_lookups=*/options.stale_steps > 0);
  const StagePlan plan(graph, options.smart_stage, options.name, NodeFilter(),
                       options.content, aligned);
  std::unique_ptr<PlannedLookups> lookups;
  if (options.stale_steps > 0) {
    lookups = std::make_unique<PlannedLookups>(graph);
    TF_RETURN_IF_ERROR(lookups->Plan(options));
  }
  const NodeSides sides(graph, plan, lookups.get(), aligned);
  *report = StageReport();
  report->stages =
      StagesReporter(graph, plan, lookups.get(), options, sides).Find();
  report->unstaged_sources = UnstagedSources(graph, sides);
  report->reasons = Reasons(graph, sides);
  AddNodes(graph, sides, report);
  AddEdges(graph, report);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
