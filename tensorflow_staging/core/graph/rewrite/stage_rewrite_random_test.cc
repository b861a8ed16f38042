// SPDX-License-Identifier: Apache-2.0
//
// Checks invariants of the partition and of the rewrite on random graphs. A
// failure reports the seed of its graph.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/control_flow.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/random_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kGraphs = 1000;

using Nodes = std::set<const Node*>;

// `node` and all nodes that it depends on.
Nodes Ancestors(const Node* node) {
  Nodes seen = {node};
  std::vector<const Node*> found = {node};
  while (!found.empty()) {
    const Node* next = found.back();
    found.pop_back();
    for (const Edge* edge : next->in_edges()) {
      if (edge->src()->IsOp() && seen.insert(edge->src()).second) {
        found.push_back(edge->src());
      }
    }
  }
  return seen;
}

// A random graph with its plan, and facts about its nodes that are computed
// independently of the partition.
class Checked {
 public:
  static bool IsTrainingRoot(const Node& node) {
    return IsMarkedTarget(node) || IsBufferPut(node);
  }

  explicit Checked(int seed)
      : random_(seed, &graph_),
        plan_(*graph_.get(), /*smart_stage=*/true, /*name=*/""),
        control_flow_(FindControlFlow(
            *graph_.get(),
            std::vector<bool>(graph_.get()->num_node_ids(), true))) {
    NodeRoles roles(*graph_.get());
    for (const Node* node : graph_.get()->op_nodes()) {
      roles_[node] = roles.Find(*node).role;
      ancestors_[node] = Ancestors(node);
    }
    for (const StagedRegion& region : partition().regions()) {
      for (const Node* node : region.nodes) region_of_[node] = &region;
    }
  }

  TestGraph& graph() { return graph_; }
  const RandomGraph& random() const { return random_; }
  const StagePlan& plan() const { return plan_; }
  const StagePartition& partition() const { return *plan_.partition(); }

  const StagedRegion* RegionOf(const Node* node) const {
    const auto it = region_of_.find(node);
    return it == region_of_.end() ? nullptr : it->second;
  }

  NodeRole RoleOf(const Node* node) const { return roles_.at(node); }

  // Whether a run may use the inputs of `node`. Nothing uses those of a
  // conditional that has neither a result nor a node of the step.
  bool IsUser(const Node* node) const {
    if (!node->IsOp()) return false;
    const int construct = control_flow_.construct_of[node->id()];
    const StepReason reason = partition().WhyNot(*node).reason;
    return construct == ControlFlow::kNoConstruct ||
           control_flow_.has_result[construct] ||
           (reason != StepReason::kUnneeded && reason != StepReason::kNoSource);
  }

  const Nodes& AncestorsOf(const Node* node) const {
    return ancestors_.at(node);
  }

  Nodes SourcesOf(const Node* node) const {
    Nodes sources;
    for (const Node* ancestor : AncestorsOf(node)) {
      if (RoleOf(ancestor) == NodeRole::kSource) sources.insert(ancestor);
    }
    return sources;
  }

  // Whether `node` belongs to a conditional or a loop, or leads to one.
  bool LeadsToControlFlow(const Node* node) const {
    return std::any_of(ancestors_.begin(), ancestors_.end(),
                       [node](const auto& entry) {
                         return entry.first->IsControlFlow() &&
                                entry.second.count(node) > 0;
                       }) ||
           std::any_of(
               AncestorsOf(node).begin(), AncestorsOf(node).end(),
               [](const Node* other) { return other->IsControlFlow(); });
  }

  // Whether training needs `node`.
  bool IsNeeded(const Node* node) const {
    for (const auto& [other, ancestors] : ancestors_) {
      if (!IsTrainingRoot(*other)) continue;
      if (ancestors.count(node) > 0) return true;
    }
    return false;
  }

  // Whether the step can compute `node` from `record`: what it depends on is in
  // the record or is no draw.
  bool CanCompute(const Node* node,
                  const std::set<std::pair<const Node*, int>>& record,
                  Nodes* seen) const {
    if (!seen->insert(node).second) return true;
    if (RoleOf(node) == NodeRole::kOncePerRecord &&
        node->type_string() != "LookupTableFindV2") {
      return false;
    }
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp() || edge->IsControlEdge() ||
          RegionOf(edge->src()) == nullptr ||
          record.count({edge->src(), edge->src_output()}) > 0) {
        continue;
      }
      if (!CanCompute(edge->src(), record, seen)) return false;
    }
    return true;
  }

  bool Draws(const Node* node) const {
    const Nodes& nodes = AncestorsOf(node);
    return std::any_of(nodes.begin(), nodes.end(), [this](const Node* other) {
      return RoleOf(other) == NodeRole::kOncePerRecord;
    });
  }

 private:
  TestGraph graph_;
  const RandomGraph random_;
  const StagePlan plan_;
  const ControlFlow control_flow_;
  std::map<const Node*, NodeRole> roles_;
  std::map<const Node*, Nodes> ancestors_;
  std::map<const Node*, const StagedRegion*> region_of_;
};

TEST(RandomGraphsTest, RegionsDependOnNothingInTheStep) {
  int staged = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    const Checked checked(seed);
    for (const StagedRegion& region : checked.partition().regions()) {
      Nodes before;
      for (const Node* node : region.nodes) {
        ++staged;
        for (const Node* ancestor : checked.AncestorsOf(node)) {
          ASSERT_NE(checked.RoleOf(ancestor), NodeRole::kStepOnly)
              << seed << ": " << node->name() << " of " << ancestor->name();
          const bool same_region = checked.RegionOf(ancestor) == &region;
          const bool shared =
              checked.SourcesOf(ancestor).empty() && !checked.Draws(ancestor);
          ASSERT_TRUE(same_region || shared)
              << seed << ": " << node->name() << " of " << ancestor->name();
        }
        // Nodes come after their inputs, occur once, and are not resource
        // handles, which are found by their names.
        for (const Edge* edge : node->in_edges()) {
          const Node* input = edge->src();
          ASSERT_TRUE(checked.RegionOf(input) != &region ||
                      before.count(input) > 0 || IsBackEdge(*edge))
              << seed << ": " << node->name();
        }
        ASSERT_TRUE(before.insert(node).second) << seed << ": " << node->name();
        ASSERT_NE(checked.RoleOf(node), NodeRole::kHandle)
            << seed << ": " << node->name();
        ASSERT_EQ(checked.partition().WhyNot(*node).reason, StepReason::kNone)
            << seed << ": " << node->name();
      }
    }
  }
  EXPECT_GT(staged, kGraphs);
}

TEST(RandomGraphsTest, TheRecordHoldsTheElementsAndWhatTheStepCannotCompute) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    const Checked checked(seed);
    for (const StagedRegion& region : checked.partition().regions()) {
      std::set<std::pair<const Node*, int>> boundary;
      for (const StagedTensor& tensor : region.boundary) {
        boundary.insert({tensor.node, tensor.index});
      }
      ASSERT_EQ(boundary.size(), region.boundary.size()) << seed;
      for (const Node* source : region.sources) {
        for (int i = 0; i < source->num_outputs(); ++i) {
          ASSERT_EQ(boundary.count({source, i}), 1)
              << seed << ": " << source->name() << ":" << i;
        }
      }
      for (const Node* node : region.nodes) {
        Nodes seen;
        for (const Edge* edge : node->out_edges()) {
          if (!checked.IsUser(edge->dst()) || edge->IsControlEdge() ||
              checked.RegionOf(edge->dst()) != nullptr) {
            continue;
          }
          ASSERT_TRUE(boundary.count({node, edge->src_output()}) > 0 ||
                      (!checked.IsNeeded(edge->dst()) &&
                       checked.CanCompute(node, boundary, &seen)))
              << seed << ": " << node->name() << ":" << edge->src_output();
        }
      }
    }
  }
}

// Each tensor that a step needs for each record makes it advance the same
// sources as without the stage. core/graph/run checks the others.
TEST(RandomGraphsTest, RecordsAndStepsStayAligned) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    const Checked checked(seed);
    for (const StagedRegion& region : checked.partition().regions()) {
      const Nodes sources(region.sources.begin(), region.sources.end());
      for (const StagedTensor& tensor : region.boundary) {
        if (sources.count(tensor.node) > 0) continue;
        ASSERT_EQ(checked.SourcesOf(tensor.node), sources)
            << seed << ": " << tensor.name();
      }
      for (const Node* node : region.control_boundary) {
        ASSERT_EQ(checked.SourcesOf(node), sources)
            << seed << ": " << node->name();
      }
    }
  }
}

TEST(RandomGraphsTest, AnIteratorIsReadOnOneSideOnly) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    std::map<std::string, std::set<const StagedRegion*>> readers;
    for (const Node* node : checked.graph().get()->op_nodes()) {
      if (node->type_string() != "IteratorGetNext") continue;
      const Edge* edge = nullptr;
      TF_CHECK_OK(node->input_edge(0, &edge));
      // Two ops may be one iterator.
      std::string name;
      TF_CHECK_OK(GetNodeAttr(edge->src()->attrs(), "shared_name", &name));
      readers[name].insert(checked.RegionOf(node));
    }
    for (const auto& [iterator, regions] : readers) {
      ASSERT_EQ(regions.size(), 1) << seed << ": " << iterator;
    }
  }
}

// A number is drawn once for each record.
TEST(RandomGraphsTest, DrawsAreUsedOnOneSideOnly) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    for (const Node* node : checked.graph().get()->op_nodes()) {
      if (!checked.Draws(node) || !checked.SourcesOf(node).empty()) continue;
      for (const Edge* edge : node->out_edges()) {
        if (!checked.IsUser(edge->dst())) continue;
        ASSERT_EQ(checked.RegionOf(edge->dst()), checked.RegionOf(node))
            << seed << ": " << node->name();
      }
    }
  }
}

// Computes which nodes are alive if every predicate has a random value.
class Simulation {
 public:
  Simulation(int seed, const Graph& graph) : random_(seed) {
    // The inputs of a node, except those from the end of a loop, have lower
    // ids.
    for (const Node* node : graph.op_nodes()) Run(*node);
  }

  bool IsAlive(const Edge& edge) const {
    const Node* src = edge.src();
    if (alive_.count(src) == 0) return false;
    if (!src->IsSwitch() || edge.IsControlEdge()) return true;
    return edge.src_output() == value_.at(PredicateOf(*src));
  }

 private:
  static const Node* PredicateOf(const Node& switch_node) {
    const Edge* edge = nullptr;
    TF_CHECK_OK(switch_node.input_edge(1, &edge));
    while (edge->src()->IsIdentity()) {
      TF_CHECK_OK(edge->src()->input_edge(0, &edge));
    }
    return edge->src();
  }

  void Run(const Node& node) {
    value_[&node] = node.IsLoopCond() ? 1 : random_() % 2;
    int inputs = 0;
    int alive = 0;
    for (const Edge* edge : node.in_edges()) {
      // Control inputs do not affect a Merge.
      if (!edge->src()->IsOp() || IsBackEdge(*edge) ||
          (node.IsMerge() && edge->IsControlEdge())) {
        continue;
      }
      ++inputs;
      // At the end of its loop, an Exit receives the other output of its
      // Switch.
      alive += node.IsExit() ? alive_.count(edge->src()) : IsAlive(*edge);
    }
    if (node.IsMerge() ? alive > 0 : alive == inputs) alive_.insert(&node);
  }

  std::mt19937 random_;
  std::map<const Node*, int> value_;
  Nodes alive_;
};

// A tensor that may be dead, or that belongs to the frame of a loop, cannot be
// carried.
TEST(RandomGraphsTest, RegionsYieldOnlyTensorsThatAreAlwaysAlive) {
  int with_conditional = 0;
  int with_loop = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    std::vector<const Edge*> leaving;
    bool conditional = false;
    bool loop = false;
    for (const StagedRegion& region : checked.partition().regions()) {
      for (const Node* node : region.nodes) {
        conditional = conditional || node->IsMerge();
        loop = loop || node->IsExit();
        for (const Edge* edge : node->out_edges()) {
          if (checked.IsUser(edge->dst()) &&
              checked.RegionOf(edge->dst()) != &region) {
            leaving.push_back(edge);
          }
        }
      }
    }
    with_conditional += conditional;
    with_loop += loop;
    for (const Edge* edge : leaving) {
      ASSERT_EQ(checked.random().in_frames().count(edge->src()), 0)
          << seed << ": " << edge->src()->name();
    }
    for (int i = 0; i < 8 && (conditional || loop); ++i) {
      const Simulation simulation(i, *checked.graph().get());
      for (const Edge* edge : leaving) {
        ASSERT_TRUE(simulation.IsAlive(*edge))
            << seed << ": " << edge->src()->name();
      }
    }
  }
  EXPECT_GT(with_conditional, kGraphs / 20);
  EXPECT_GT(with_loop, kGraphs / 20);
}

TEST(RandomGraphsTest, SharedNodesBelongToNoLoopOfARegion) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    const Checked checked(seed);
    for (const StagedRegion& region : checked.partition().regions()) {
      for (const Node* node : region.nodes) {
        for (const Edge* edge : node->in_edges()) {
          ASSERT_TRUE(checked.RegionOf(edge->src()) == &region ||
                      checked.random().in_frames().count(edge->src()) == 0)
              << seed << ": " << node->name();
        }
      }
    }
  }
}

// The inputs of every node, by the node's name.
std::map<std::string, std::vector<std::string>> InputsByName(
    const TestGraph& graph, Graph* nodes) {
  std::map<std::string, std::vector<std::string>> inputs;
  for (const Node* node : nodes->op_nodes()) {
    const bool is_new =
        inputs.emplace(node->name(), graph.Inputs(node->name())).second;
    EXPECT_TRUE(is_new) << "two nodes have the name " << node->name();
  }
  return inputs;
}

// The names of the nodes on cycles other than loops, and of those that depend
// on such a cycle.
std::vector<std::string> NodesBehindCycles(const Graph& graph) {
  std::map<const Node*, int> missing;
  std::vector<const Node*> ready;
  for (const Node* node : graph.nodes()) {
    missing[node] =
        std::count_if(node->in_edges().begin(), node->in_edges().end(),
                      [](const Edge* edge) { return !IsBackEdge(*edge); });
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const Node* node = ready.back();
    ready.pop_back();
    missing.erase(node);
    for (const Edge* edge : node->out_edges()) {
      if (IsBackEdge(*edge)) continue;
      if (--missing[edge->dst()] == 0) ready.push_back(edge->dst());
    }
  }
  std::vector<std::string> names;
  for (const auto& [node, count] : missing) names.push_back(node->name());
  return names;
}

TEST(RandomGraphsTest, TheRewriteKeepsTheNamesOfTheStepAndCreatesNoCycle) {
  int rewritten = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    TestGraph& graph = checked.graph();
    const auto before = InputsByName(graph, graph.get());
    std::set<std::string> puts;
    std::set<std::string> staged;
    std::set<std::string> takes;
    for (const PlannedStage& stage : checked.plan().stages()) {
      if (stage.region == nullptr) continue;
      ++rewritten;
      for (const Node* node : stage.region->nodes) staged.insert(node->name());
      for (const Node* put : stage.puts) puts.insert(put->name());
      if (!stage.is_manual()) puts.insert(stage.NodeName("TensorBufferPut"));
      takes.insert(stage.is_manual() ? stage.take->name() + "/record"
                                     : stage.NodeName("TensorBufferTake"));
    }
    ASSERT_EQ(RewriteStages(checked.plan(), RewriteOptions(), graph.get()),
              OkStatus())
        << seed;

    const auto after = InputsByName(graph, graph.get());
    for (const auto& [name, inputs] : before) {
      if (staged.count(name) > 0) continue;
      ASSERT_EQ(after.count(name), 1) << seed << ": " << name;
      if (puts.count(name) > 0) continue;
      ASSERT_EQ(after.at(name), inputs) << seed << ": " << name;
    }
    ASSERT_EQ(NodesBehindCycles(*graph.get()), std::vector<std::string>())
        << seed;
    std::vector<ControlFlowInfo> frames;
    ASSERT_EQ(BuildControlFlowInfo(graph.get(), &frames), OkStatus()) << seed;
    for (const std::string& put : puts) {
      for (const Node* ancestor : Ancestors(graph.Find(put))) {
        ASSERT_EQ(takes.count(ancestor->name()), 0)
            << seed << ": " << put << " waits for " << ancestor->name();
      }
    }
  }
  EXPECT_GT(rewritten, kGraphs / 4);
}

// A clone on which the Put does not depend would never run. Only results of
// constructs that the step does not use, and what leads to them, have such
// clones.
TEST(RandomGraphsTest, EveryPutDependsOnAllClonesThatTheStepNeeds) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    TestGraph& graph = checked.graph();
    std::map<std::string, std::set<std::string>> clones_of_put;
    for (const PlannedStage& stage : checked.plan().stages()) {
      if (stage.region == nullptr) continue;
      Nodes needed;
      for (const StagedTensor& tensor : stage.region->boundary) {
        const Nodes& ancestors = checked.AncestorsOf(tensor.node);
        needed.insert(ancestors.begin(), ancestors.end());
      }
      for (const Node* node : stage.region->control_boundary) {
        const Nodes& ancestors = checked.AncestorsOf(node);
        needed.insert(ancestors.begin(), ancestors.end());
      }
      for (const Node* node : stage.region->nodes) {
        if (node == stage.take) continue;
        if (needed.count(node) == 0) {
          ASSERT_TRUE(checked.LeadsToControlFlow(node))
              << seed << ": " << node->name();
          continue;
        }
        clones_of_put[stage.is_manual() ? stage.puts.front()->name()
                                        : stage.NodeName("TensorBufferPut")]
            .insert(strings::StrCat(stage.name, "/staged/", node->name()));
      }
    }
    ASSERT_EQ(RewriteStages(checked.plan(), RewriteOptions(), graph.get()),
              OkStatus());
    for (const auto& [put, clones] : clones_of_put) {
      std::set<std::string> ahead;
      for (const Node* node : Ancestors(graph.Find(put))) {
        ahead.insert(node->name());
      }
      for (const std::string& clone : clones) {
        ASSERT_EQ(ahead.count(clone), 1) << seed << ": " << clone;
      }
    }
  }
}

// Within a region, clones use clones where their originals used originals.
TEST(RandomGraphsTest, ClonesAreConnectedLikeTheirOriginals) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    TestGraph& graph = checked.graph();
    const auto before = InputsByName(graph, graph.get());
    std::map<std::string, std::set<std::string>> staged;  // By stage.
    for (const PlannedStage& stage : checked.plan().stages()) {
      if (stage.region == nullptr || stage.is_manual()) continue;
      for (const Node* node : stage.region->nodes) {
        staged[stage.name].insert(node->name());
      }
    }
    ASSERT_EQ(RewriteStages(checked.plan(), RewriteOptions(), graph.get()),
              OkStatus());
    for (const auto& [stage, names] : staged) {
      for (const std::string& name : names) {
        std::vector<std::string> expected;
        for (const std::string& input : before.at(name)) {
          absl::string_view bare = input;
          const bool control = absl::ConsumePrefix(&bare, "^");
          const std::string node(bare.substr(0, bare.find(':')));
          expected.push_back(strings::StrCat(
              control ? "^" : "",
              names.count(node) > 0 ? stage + "/staged/" : "", bare));
        }
        std::sort(expected.begin(), expected.end());
        std::vector<std::string> inputs =
            graph.Inputs(stage + "/staged/" + name);
        std::sort(inputs.begin(), inputs.end());
        ASSERT_EQ(inputs, expected) << seed << ": " << name;
      }
    }
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
