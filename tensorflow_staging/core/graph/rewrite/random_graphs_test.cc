// SPDX-License-Identifier: Apache-2.0
//
// Checks invariants of the partition and of the rewrite on random graphs. A
// failure reports the seed of its graph.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/random_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kGraphs = 2000;

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
        plan_(*graph_.get(), /*smart_stage=*/true, /*name=*/"") {
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
  const StagePlan& plan() const { return plan_; }
  const StagePartition& partition() const { return *plan_.partition(); }

  const StagedRegion* RegionOf(const Node* node) const {
    const auto it = region_of_.find(node);
    return it == region_of_.end() ? nullptr : it->second;
  }

  NodeRole RoleOf(const Node* node) const { return roles_.at(node); }

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
                  const std::set<std::pair<const Node*, int>>& record) const {
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
      if (!CanCompute(edge->src(), record)) return false;
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
                      before.count(input) > 0)
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
        for (const Edge* edge : node->out_edges()) {
          if (!edge->dst()->IsOp() || edge->IsControlEdge() ||
              checked.RegionOf(edge->dst()) != nullptr) {
            continue;
          }
          ASSERT_TRUE(boundary.count({node, edge->src_output()}) > 0 ||
                      (!checked.IsNeeded(edge->dst()) &&
                       checked.CanCompute(node, boundary)))
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
        if (!edge->dst()->IsOp()) continue;
        ASSERT_EQ(checked.RegionOf(edge->dst()), checked.RegionOf(node))
            << seed << ": " << node->name();
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

// The names of the nodes on cycles, and of those that depend on a cycle.
std::vector<std::string> NodesBehindCycles(const Graph& graph) {
  std::map<const Node*, int> missing;
  std::vector<const Node*> ready;
  for (const Node* node : graph.nodes()) {
    missing[node] = node->in_edges().size();
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const Node* node = ready.back();
    ready.pop_back();
    missing.erase(node);
    for (const Edge* edge : node->out_edges()) {
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
    for (const std::string& put : puts) {
      for (const Node* ancestor : Ancestors(graph.Find(put))) {
        ASSERT_EQ(takes.count(ancestor->name()), 0)
            << seed << ": " << put << " waits for " << ancestor->name();
      }
    }
  }
  EXPECT_GT(rewritten, kGraphs / 4);
}

// A clone on which the Put does not depend would never run.
TEST(RandomGraphsTest, EveryPutDependsOnAllClonesOfItsRegion) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    Checked checked(seed);
    TestGraph& graph = checked.graph();
    std::map<std::string, std::set<std::string>> clones_of_put;
    for (const PlannedStage& stage : checked.plan().stages()) {
      if (stage.region == nullptr) continue;
      for (const Node* node : stage.region->nodes) {
        if (node == stage.take) continue;
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
