// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

struct ByNodeName {
  bool operator()(const Node* a, const Node* b) const {
    return a->name() < b->name();
  }
};

using NodeSet = std::set<const Node*, ByNodeName>;

using SavedByOwner = std::map<const Node*, SavedIterator, ByNodeName>;

SavedByOwner ByOwner(const PlannedStage& stage) {
  SavedByOwner by_owner;
  for (const SavedIterator& saved : stage.saved_iterators) {
    by_owner[saved.owner] = saved;
  }
  return by_owner;
}

void SetSavedIterators(SavedByOwner by_owner, PlannedStage* stage) {
  stage->saved_iterators.clear();
  for (auto& [owner, saved] : by_owner) {
    stage->saved_iterators.push_back(std::move(saved));
  }
}

// Finds the ops that initialise, save and restore the iterators of `sources`,
// and those that convert their handles to strings.
void AddIterators(const std::vector<const Node*>& sources,
                  const Resources& resources, PlannedStage* stage) {
  NodeSet initializers;
  NodeSet string_handles;
  SavedByOwner saved_iterators;
  for (const Node* source : sources) {
    SavedIterator saved;
    saved.owner = resources.IteratorOf(*source);
    for (const ResourceUse& use : resources.UsesOf(*saved.owner)) {
      const std::string& op = use.user->type_string();
      if (IsIteratorInitializer(*use.user)) initializers.insert(use.user);
      if (IsIteratorToStringHandle(*use.user)) string_handles.insert(use.user);
      if (op == kSaveIteratorOp) saved.savers.push_back(use.user);
      if (op == kRestoreIteratorOp) saved.restorers.push_back(use.user);
    }
    if (saved.savers.empty() && saved.restorers.empty()) continue;
    saved_iterators[saved.owner] = std::move(saved);
  }
  stage->initializers.assign(initializers.begin(), initializers.end());
  stage->string_handles.assign(string_handles.begin(), string_handles.end());
  SetSavedIterators(std::move(saved_iterators), stage);
}

// Lets what restarts the stage of `take`, a stage of a rewritten graph, also
// restart `stage`, which takes its records.
void AddStageBefore(const Node& take, const Graph& graph, PlannedStage* stage) {
  NodeSet initializers;
  for (const Node* node : graph.op_nodes()) {
    if (!IsBufferRestart(*node) || !(BufferOf(*node) == BufferOf(take)))
      continue;
    stage->restarts_before.push_back(node);
    // In a chain, the Restart of the stage before waits for this one, too.
    for (const Edge* edge : node->out_edges()) {
      const Node* next = edge->dst();
      if (IsIteratorInitializer(*next) ||
          next->type_string() == kRestoreIteratorOp) {
        initializers.insert(next);
      }
    }
  }
  stage->initializers.assign(initializers.begin(), initializers.end());
}

// Returns `puts` and all nodes that lead to them.
std::vector<const Node*> NodesOf(const std::vector<const Node*>& puts) {
  absl::flat_hash_set<const Node*> seen(puts.begin(), puts.end());
  std::vector<const Node*> found(puts.begin(), puts.end());
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Edge* edge : found[i]->in_edges()) {
      if (edge->src()->IsOp() && seen.insert(edge->src()).second) {
        found.push_back(edge->src());
      }
    }
  }
  return found;
}

// Returns the sources among `nodes`, the nodes that lead to the Puts of a
// stage, whose direct successors are all among them. Takes of other stages are
// sources too. A source that the step reads as well must not wait for the
// stage.
std::vector<const Node*> SourcesIn(const std::vector<const Node*>& nodes,
                                   NodeRoles* roles) {
  const absl::flat_hash_set<const Node*> inside(nodes.begin(), nodes.end());
  std::vector<const Node*> sources;
  for (const Node* node : nodes) {
    if (roles->Find(*node).role != NodeRole::kSource) continue;
    const bool leads_to_puts_only = std::all_of(
        node->out_edges().begin(), node->out_edges().end(),
        [&inside](const Edge* edge) {
          return !edge->dst()->IsOp() || inside.contains(edge->dst());
        });
    if (leads_to_puts_only) sources.push_back(node);
  }
  return sources;
}

bool AnySwitch(const std::vector<const Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
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
      if (counts != nullptr && !counts(*node)) continue;
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
    std::sort(of_name.begin(), of_name.end(),
              [](const PlannedStage* a, const PlannedStage* b) {
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

bool PlannedStage::is_restartable() const {
  return !initializers.empty() ||
         std::any_of(saved_iterators.begin(), saved_iterators.end(),
                     [](const SavedIterator& saved) {
                       return !saved.restorers.empty();
                     });
}

StagePlan::StagePlan(const Graph& graph, bool smart_stage,
                     const std::string& name, const NodeFilter& counts,
                     RecordContent content, SavedIterators saved_iterators) {
  if (smart_stage) {
    partition_ = std::make_unique<StagePartition>(graph, counts, content,
                                                  saved_iterators);
  }
  // Also of the nodes that do not count: one that is added later may initialise
  // an iterator again.
  const Resources resources(graph);
  AddManualStages(graph, counts, resources);
  if (smart_stage) {
    AddRegions(graph, counts, resources,
               name.empty() ? kDefaultStageName : name);
  }
  std::sort(stages_.begin(), stages_.end(),
            [](const PlannedStage& a, const PlannedStage& b) {
              return a.name < b.name;
            });
}

StagePlan::StagePlan(const Graph& graph, const StaleReads& stale,
                     const std::string& name, const NodeFilter& counts)
    : partition_(std::make_unique<StagePartition>(
          graph, counts, RecordContent::kElements, SavedIterators::kInStep,
          &stale)) {
  const Resources resources(graph);
  NewNames names(graph, counts, name);
  for (const StagedRegion& region : partition_->regions()) {
    PlannedStage stage;
    stage.name = names.Next();
    stage.region = &region;
    stage.check_puts = AnySwitch(region.nodes);
    const Node* source = region.sources.front();
    if (IsBufferTake(*source)) {
      AddStageBefore(*source, graph, &stage);
    } else {
      AddIterators(region.sources, resources, &stage);
    }
    stages_.push_back(std::move(stage));
  }
}

bool StagePlan::IsInRegion(const Node& node) const {
  return partition_ != nullptr &&
         partition_->WhyNot(node).reason == StepReason::kNone;
}

void StagePlan::AddManualStages(const Graph& graph, const NodeFilter& counts,
                                const Resources& resources) {
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
  NodeRoles roles(graph);
  for (auto& [buffer, stage] : by_buffer) {
    // An incomplete stage, or several Takes of one buffer: tf.staged did not
    // create it.
    if (stage.take == nullptr || stage.puts.empty() ||
        several_takes.count(buffer) > 0) {
      continue;
    }
    const std::vector<const Node*> nodes = NodesOf(stage.puts);
    stage.check_puts = AnySwitch(nodes);
    for (const Node* source : SourcesIn(nodes, &roles)) {
      // A manual stage that is added later may read a source that is already in
      // a region.
      if (!IsInRegion(*source)) stage.gated_sources.push_back(source);
    }
    AddIterators(stage.gated_sources, resources, &stage);
    stages_.push_back(std::move(stage));
  }
  MakeNamesUnique(graph, counts, &stages_);
  ChainManualStages();
}

void StagePlan::ChainManualStages() {
  std::map<const Node*, const PlannedStage*> by_take;
  for (const PlannedStage& stage : stages_) by_take[stage.take] = &stage;
  const auto before = [&by_take](const PlannedStage& stage) {
    std::vector<const PlannedStage*> found;
    for (const Node* source : stage.gated_sources) {
      const auto it = by_take.find(source);
      if (it != by_take.end()) found.push_back(it->second);
    }
    return found;
  };
  for (PlannedStage& stage : stages_) {
    for (const PlannedStage* other : before(stage)) {
      stage.stages_before.push_back(other->name);
    }
  }
  // An initialiser that restarts a stage also restarts the stages that take its
  // records, because they would still hold records of the old data, and what
  // saves a stage also saves those. The loop takes as many rounds as the
  // longest chain has stages.
  for (bool changed = true; changed;) {
    changed = false;
    for (PlannedStage& stage : stages_) {
      NodeSet initializers(stage.initializers.begin(),
                           stage.initializers.end());
      SavedByOwner saved_iterators = ByOwner(stage);
      for (const PlannedStage* other : before(stage)) {
        initializers.insert(other->initializers.begin(),
                            other->initializers.end());
        saved_iterators.merge(ByOwner(*other));
      }
      if (initializers.size() == stage.initializers.size() &&
          saved_iterators.size() == stage.saved_iterators.size()) {
        continue;
      }
      stage.initializers.assign(initializers.begin(), initializers.end());
      SetSavedIterators(std::move(saved_iterators), &stage);
      changed = true;
    }
  }
}

void StagePlan::AddRegions(const Graph& graph, const NodeFilter& counts,
                           const Resources& resources,
                           const std::string& name) {
  std::map<const Node*, PlannedStage*> by_take;
  for (PlannedStage& stage : stages_) by_take[stage.take] = &stage;
  std::vector<PlannedStage> added;
  NewNames names(graph, counts, name);
  for (const PlannedStage& stage : stages_) {
    if (counts == nullptr || counts(*stage.take)) names.Reserve(stage.name);
  }
  for (const StagedRegion& region : partition_->regions()) {
    const Node* source = region.sources.front();
    if (IsBufferTake(*source)) {
      const auto it = by_take.find(source);
      // The Take, and stand-ins for what it carries, add nothing to the stage.
      const bool adds = std::any_of(
          region.nodes.begin(), region.nodes.end(), [](const Node* node) {
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
    AddIterators(region.sources, resources, &stage);
    added.push_back(std::move(stage));
  }
  for (PlannedStage& stage : added) stages_.push_back(std::move(stage));
}

}  // namespace staging
}  // namespace tensorflow
