// SPDX-License-Identifier: Apache-2.0
//
// Tests the partition of a graph to which nodes were added after its stages had
// begun to run.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

// A graph whose partition each Growth below would change without the filter:
//
//   next:0 --> inner --> a --> b --> target    joined_1 --> sum
//                 random ------^               joined_2 ----^
//                        a --> leaf
//   next:1 --> found --> target_of_found       sum --> target_of_sum
class GrowingGraph {
 public:
  GrowingGraph() {
    iterator_ = graph_.Iterator("iterator", 3);
    next_ = graph_.GetNext("next", iterator_, 3);
    inner_ = graph_.Neg("inner", {next_, 0});
    Node* a = graph_.Neg("a", inner_);
    random_ = graph_.Random("random");
    graph_.Target("target", {graph_.AddN("b", {a, random_})});
    leaf_ = graph_.Neg("leaf", a);
    table_ = graph_.Table("table", "MutableHashTableV2");
    graph_.Target("target_of_found",
                  {graph_.Lookup("found", table_, {next_, 1})});
    joined_ = graph_.Iterator("joined_iterator");
    Node* sum = graph_.AddN("sum", {graph_.GetNext("joined_1", joined_),
                                    graph_.Source("joined_2")});
    graph_.Target("target_of_sum", {sum});
    for (const Node* node : graph_.get()->op_nodes()) {
      old_nodes_.insert(node->name());
    }
  }

  NodeFilter IsOld() const {
    return NodeFilter(
        [this](const Node& node) { return old_nodes_.count(node.name()) > 0; });
  }

  // Describes the partition, with the reasons of the old nodes.
  Strings Describe(const NodeFilter& counts) {
    const StagePartition partition(*graph_.get(), counts);
    Strings lines;
    for (const StagedRegion& region : partition.regions()) {
      Strings boundary;
      for (const StagedTensor& tensor : region.boundary) {
        boundary.push_back(tensor.name());
      }
      Strings nodes = Names(region.nodes);
      std::sort(nodes.begin(), nodes.end());
      for (const Strings& names : {Names(region.sources), nodes, boundary,
                                   Names(region.control_boundary)}) {
        lines.push_back(absl::StrJoin(names, " "));
      }
    }
    for (const Node* node : graph_.get()->op_nodes()) {
      if (!IsOld()(*node)) continue;
      lines.push_back(strings::StrCat(
          node->name(), " ", ReasonText(*node, partition.WhyNot(*node))));
    }
    return lines;
  }

  TestGraph graph_;
  Node* iterator_;
  Node* next_;
  Node* inner_;
  Node* random_;
  Node* leaf_;
  Node* table_;
  Node* joined_;

 private:
  std::set<std::string> old_nodes_;
};

// A way to add nodes to the graph.
struct Growth {
  const char* name;
  std::function<void(GrowingGraph*)> add;
};

class AddedLaterTest : public ::testing::TestWithParam<Growth> {};

TEST_P(AddedLaterTest, ThePartitionOfTheOldNodesDoesNotChange) {
  GrowingGraph grown;
  const Strings before = grown.Describe(NodeFilter());
  EXPECT_EQ(grown.Describe(grown.IsOld()), before);
  GetParam().add(&grown);
  EXPECT_EQ(grown.Describe(grown.IsOld()), before);
  // Without the filter the partition must change, or this test proves nothing.
  EXPECT_NE(grown.Describe(NodeFilter()), before);
}

TEST_P(AddedLaterTest, NewNodesAreInTheStepBecauseTheyWereAddedLater) {
  GrowingGraph grown;
  GetParam().add(&grown);
  const StagePartition partition(*grown.graph_.get(), grown.IsOld());
  for (const Node* node : grown.graph_.get()->op_nodes()) {
    if (grown.IsOld()(*node)) continue;
    const LocatedReason located = partition.WhyNot(*node);
    EXPECT_EQ(located.reason, StepReason::kAddedLater) << node->name();
    EXPECT_EQ(located.node, node);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EachWay, AddedLaterTest,
    ::testing::Values(
        Growth{"UserOfAnInnerTensor",
               [](GrowingGraph* grown) {
                 grown->graph_.Target("later", {grown->inner_});
               }},
        Growth{"NodeThatWaitsForAnInnerNode",
               [](GrowingGraph* grown) {
                 grown->graph_.AddControl(
                     grown->inner_,
                     grown->graph_.Target("later",
                                          {grown->graph_.Const("one", 1)}));
               }},
        Growth{"NodesBetweenTheSourceAndTheStep",
               [](GrowingGraph* grown) {
                 TestGraph& graph = grown->graph_;
                 graph.Target("later",
                              {graph.Neg("later_neg", {grown->next_, 2})});
               }},
        Growth{"UserOfALeaf",
               [](GrowingGraph* grown) {
                 grown->graph_.Target("later", {grown->leaf_});
               }},
        Growth{"UserOfADraw",
               [](GrowingGraph* grown) {
                 grown->graph_.Target("later", {grown->random_});
               }},
        Growth{"ReaderOfAnIterator",
               [](GrowingGraph* grown) {
                 TestGraph& graph = grown->graph_;
                 graph.Target("later", {graph.GetNext("later_next",
                                                      grown->iterator_, 3)});
               }},
        Growth{"InitializerOfAJoinedIterator",
               [](GrowingGraph* grown) {
                 grown->graph_.InitializeWithRange("later", grown->joined_, 0,
                                                   1);
               }},
        Growth{"WriterOfATable",
               [](GrowingGraph* grown) {
                 TestGraph& graph = grown->graph_;
                 NodeBuilder insert("later", "LookupTableInsertV2");
                 insert.Input(grown->table_)
                     .Input(graph.Const("key", 1))
                     .Input(graph.Const("value", 1));
                 graph.Finalize(&insert);
               }},
        Growth{"ManualStage",
               [](GrowingGraph* grown) {
                 grown->graph_.Stage("later", {grown->inner_});
               }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace staging
}  // namespace tensorflow
