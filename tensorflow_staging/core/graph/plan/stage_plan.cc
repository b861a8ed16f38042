// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

bool AnySwitch(const std::vector<const Node*>& nodes) {
  return absl::c_any_of(nodes,
                        [](const Node* node) { return node->IsSwitch(); });
}

// Creates names that no node and no name scope of a graph has.
class NewNames {
 public:
  // All names will begin with `prefix`.
  NewNames(const Graph& graph, const NodeFilter& counts,
           const std::string& prefix)
      : prefix_(prefix) {
    for (const Node* node : graph.op_nodes()) {
      if (!counts(*node)) continue;
      if (absl::StartsWith(node->name(), prefix)) used_.insert(node->name());
    }
  }

  void Reserve(const std::string& name) { used_.insert(name); }

  // Returns the prefix, or the prefix with the first number that makes it new.
  std::string Next() {
    std::string name = prefix_;
    for (int i = 1; IsUsed(name); ++i) name = strings::StrCat(prefix_, "_", i);
    used_.insert(name);
    return name;
  }

 private:
  bool IsUsed(const std::string& name) const {
    if (used_.count(name) > 0) return true;
    const std::string scope = name + "/";
    const auto it = used_.lower_bound(scope);
    return it != used_.end() && absl::StartsWith(*it, scope);
  }

  const std::string prefix_;
  std::set<std::string> used_;
};

// The first of the ops of a manual stage, of which AlignStages replaces some.
int FirstId(const PlannedStage& stage) {
  int first = stage.take->id();
  for (const Node* op : stage.control_ops) first = std::min(first, op->id());
  return first;
}

// Renames manual stages that have the name of another one. The stage whose ops
// come first in the graph keeps the name, because nodes that are added later
// must not rename a running stage.
void MakeNamesUnique(const Graph& graph, const NodeFilter& counts,
                     std::vector<PlannedStage>* stages) {
  std::map<std::string, std::vector<PlannedStage*>> by_name;
  for (PlannedStage& stage : *stages) by_name[stage.name].push_back(&stage);
  for (auto& [name, of_name] : by_name) {
    if (of_name.size() == 1) continue;
    absl::c_sort(of_name, [](const PlannedStage* a, const PlannedStage* b) {
      return FirstId(*a) < FirstId(*b);
    });
    NewNames names(graph, counts, name);
    for (const auto& [other, unused] : by_name) names.Reserve(other);
    for (size_t i = 1; i < of_name.size(); ++i) of_name[i]->name = names.Next();
  }
}

}  // namespace

std::string PlannedStage::NodeName(absl::string_view suffix) const {
  return strings::StrCat(name, "/", suffix);
}

std::vector<const Node*> PlannedStage::Nodes() const {
  if (!is_manual()) return InGraphOrder(region->nodes);
  return InGraphOrder(WithAncestors(puts, [](const Edge& edge) {
    return !IsBufferTake(*edge.src()) && !IsFedByStages(edge);
  }));
}

StagePlan::StagePlan(const Graph& graph, bool smart_stage,
                     const std::string& name, const NodeFilter& counts,
                     RecordContent content, AlignedWith aligned) {
  if (smart_stage) {
    partition_ = std::make_unique<StagePartition>(
        graph, counts, content, /*stale=*/nullptr, GivenRoles(), aligned);
  }
  AddManualStages(graph, counts);
  if (smart_stage) {
    AddRegions(graph, counts, name.empty() ? kDefaultStageName : name);
  }
  absl::c_sort(stages_, [](const PlannedStage& a, const PlannedStage& b) {
    return a.name < b.name;
  });
}

StagePlan::StagePlan(const Graph& graph, const StaleReads& stale,
                     const std::string& name, const NodeFilter& counts)
    : partition_(std::make_unique<StagePartition>(
          graph, counts, RecordContent::kElements, &stale)) {
  NewNames names(graph, counts, name);
  for (const StagedRegion& region : partition_->regions()) {
    PlannedStage stage;
    stage.name = names.Next();
    stage.region = &region;
    stage.check_puts = AnySwitch(region.nodes);
    stages_.push_back(std::move(stage));
  }
}

void StagePlan::AddManualStages(const Graph& graph, const NodeFilter& counts) {
  std::map<BufferKey, PlannedStage> by_buffer;
  std::set<BufferKey> several_takes;
  for (const Node* node : graph.op_nodes()) {
    const std::optional<BufferKey> buffer = BufferOf(*node);
    if (!buffer) continue;
    PlannedStage& stage = by_buffer[*buffer];
    stage.name = buffer->name;
    if (IsBufferTake(*node)) {
      if (stage.take != nullptr) several_takes.insert(*buffer);
      stage.take = node;
    } else if (IsBufferPut(*node)) {
      stage.puts.push_back(node);
    } else {
      stage.control_ops.push_back(node);
    }
  }
  for (auto& [buffer, stage] : by_buffer) {
    // An incomplete stage, or several Takes of one buffer: tf.staged did not
    // create it.
    if (stage.take == nullptr || stage.puts.empty() ||
        several_takes.count(buffer) > 0) {
      continue;
    }
    stage.check_puts = AnySwitch(WithAncestors(stage.puts));
    stages_.push_back(std::move(stage));
  }
  MakeNamesUnique(graph, counts, &stages_);
}

void StagePlan::AddRegions(const Graph& graph, const NodeFilter& counts,
                           const std::string& name) {
  std::map<const Node*, PlannedStage*> by_take;
  for (PlannedStage& stage : stages_) by_take[stage.take] = &stage;
  std::vector<PlannedStage> added;
  NewNames names(graph, counts, name);
  for (const PlannedStage& stage : stages_) {
    if (counts(*stage.take)) names.Reserve(stage.name);
  }
  for (const StagedRegion& region : partition_->regions()) {
    const Node* source = region.sources.front();
    if (IsBufferTake(*source)) {
      const auto it = by_take.find(source);
      // The Take, and stand-ins for what it carries, add nothing to the stage.
      const bool adds = absl::c_any_of(region.nodes, [](const Node* node) {
        return !IsBufferTake(*node) && !IsStandIn(*node);
      });
      if (it != by_take.end() && adds) {
        it->second->region = &region;
        it->second->check_puts |= AnySwitch(region.nodes);
      }
      continue;
    }
    PlannedStage stage;
    stage.name = names.Next();
    stage.region = &region;
    stage.check_puts = AnySwitch(region.nodes);
    added.push_back(std::move(stage));
  }
  for (PlannedStage& stage : added) stages_.push_back(std::move(stage));
}

}  // namespace staging
}  // namespace tensorflow
