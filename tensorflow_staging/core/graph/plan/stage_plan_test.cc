// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

Strings StageNames(const StagePlan& plan) {
  Strings names;
  for (const PlannedStage& stage : plan.stages()) names.push_back(stage.name);
  return names;
}

// Adds `count` iterators, each with a target of its own.
void AddIterators(int count, TestGraph* graph) {
  for (int i = 0; i < count; ++i) {
    graph->Target(strings::StrCat("target", i),
                  {graph->Source(strings::StrCat("next", i))});
  }
}

TEST(StagePlanTest, EachRegionBecomesAStageInTheOrderOfTheSources) {
  TestGraph graph;
  AddIterators(3, &graph);
  const StagePlan plan(*graph.get(), /*smart_stage=*/true, /*name=*/"");
  ASSERT_EQ(StageNames(plan),
            (Strings{"prefetch", "prefetch_1", "prefetch_2"}));
  for (int i = 0; i < 3; ++i) {
    const PlannedStage& stage = plan.stages()[i];
    ASSERT_NE(stage.region, nullptr);
    EXPECT_EQ(Names(stage.region->sources),
              Strings{strings::StrCat("next", i)});
    EXPECT_FALSE(stage.is_manual());
  }
  EXPECT_EQ(plan.stages()[1].NodeName("TensorBufferPut"),
            "prefetch_1/TensorBufferPut");
}

TEST(StagePlanTest, StagesGetThePreferredName) {
  TestGraph graph;
  AddIterators(1, &graph);
  EXPECT_EQ(StageNames(StagePlan(*graph.get(), true, "ahead")),
            Strings{"ahead"});
}

TEST(StagePlanTest, NamesOfNodesAndOfScopesAreAvoided) {
  TestGraph graph;
  AddIterators(2, &graph);
  graph.NoOp("prefetch");
  graph.NoOp("prefetch_1/of_the_user");
  graph.NoOp("prefetch_22");
  EXPECT_EQ(StageNames(StagePlan(*graph.get(), true, "")),
            (Strings{"prefetch_2", "prefetch_3"}));
}

TEST(StagePlanTest, NodesThatDoNotCountReserveNoName) {
  TestGraph graph;
  AddIterators(1, &graph);
  const Node* later = graph.NoOp("prefetch/of_the_user");
  const NodeFilter is_old([later](const Node& node) { return &node != later; });
  EXPECT_EQ(StageNames(StagePlan(*graph.get(), true, "", is_old)),
            Strings{"prefetch"});
}

TEST(StagePlanTest, WithoutSmartStageThereAreOnlyManualStages) {
  TestGraph graph;
  AddIterators(1, &graph);
  Node* take = graph.Stage("manual", {graph.Source("staged_next")});
  graph.Target("target", {graph.Neg("a", take)});
  const StagePlan plan(*graph.get(), /*smart_stage=*/false, "");
  ASSERT_EQ(StageNames(plan), Strings{"manual"});
  EXPECT_EQ(plan.partition(), nullptr);
  EXPECT_EQ(plan.stages().front().region, nullptr);
}

TEST(StagePlanTest, AManualStageHasItsOpsAndItsRegion) {
  TestGraph graph;
  Node* take = graph.Stage("manual", {graph.Source("next")});
  Node* second = graph.Put("second", "manual", {graph.Source("other_next")});
  graph.Target("target", {graph.Neg("a", take)});
  const StagePlan plan(*graph.get(), true, "");
  ASSERT_EQ(plan.stages().size(), 1);
  const PlannedStage& stage = plan.stages().front();
  EXPECT_TRUE(stage.is_manual());
  EXPECT_EQ(stage.take, take);
  EXPECT_EQ(stage.puts, (std::vector<const Node*>{
                            graph.Find("manual/TensorBufferPut"), second}));
  EXPECT_EQ(Names(stage.control_ops),
            (Strings{"manual/TensorBufferCancel", "manual/TensorBufferResume",
                     "manual/TensorBufferSize"}));
  ASSERT_NE(stage.region, nullptr);
  EXPECT_EQ(Names(stage.region->nodes),
            (Strings{"manual/TensorBufferTake", "a"}));
}

// Adds a Put and a Take for a buffer called "manual". As in an imported graph,
// their names do not begin with that of the stage.
void AddStageInContainer(const std::string& container, TestGraph* graph) {
  NodeBuilder put(container + "/put", "TensorBufferPut");
  put.Input(TestGraph::Outs{graph->Source(container + "/next")})
      .Attr("shared_name", "manual")
      .Attr("container", container);
  graph->Finalize(&put);
  NodeBuilder take(container + "/take", "TensorBufferTake");
  take.Attr("dtypes", DataTypeVector{DT_INT64})
      .Attr("shared_name", "manual")
      .Attr("container", container);
  Node* taken = graph->Finalize(&take);
  graph->Target(container + "/target", {graph->Neg(container + "/neg", taken)});
}

TEST(StagePlanTest, BuffersOfOneNameInTwoContainersAreTwoStages) {
  TestGraph graph;
  AddStageInContainer("b", &graph);
  AddStageInContainer("a", &graph);
  const StagePlan plan(*graph.get(), true, "");
  // The first stage of the graph has the name of the buffer.
  ASSERT_EQ(StageNames(plan), (Strings{"manual", "manual_1"}));
  EXPECT_EQ(Names(plan.stages()[0].puts), Strings{"b/put"});
  EXPECT_EQ(plan.stages()[0].take->name(), "b/take");
  ASSERT_NE(plan.stages()[0].region, nullptr);
  EXPECT_EQ(Names(plan.stages()[0].region->nodes),
            (Strings{"b/take", "b/neg"}));
  EXPECT_EQ(Names(plan.stages()[1].puts), Strings{"a/put"});
  EXPECT_EQ(plan.stages()[1].take->name(), "a/take");
}

TEST(StagePlanTest, ARenamedStageGetsANewName) {
  TestGraph graph;
  AddStageInContainer("a", &graph);
  AddStageInContainer("b", &graph);
  graph.Target("target", {graph.Stage("manual_1", {graph.Source("next")})});
  graph.NoOp("manual_2/of_the_user");
  graph.Target("other", {graph.Source("other_next")});
  EXPECT_EQ(StageNames(StagePlan(*graph.get(), true, "manual")),
            (Strings{"manual", "manual_1", "manual_3", "manual_4"}));
}

TEST(StagePlanTest, AStageThatIsAddedLaterRenamesNoOther) {
  TestGraph graph;
  AddStageInContainer("b", &graph);
  const int old_ids = graph.get()->num_node_ids();
  AddStageInContainer("a", &graph);
  const NodeFilter is_old(
      [old_ids](const Node& node) { return node.id() < old_ids; });
  const StagePlan plan(*graph.get(), true, "", is_old);
  ASSERT_EQ(StageNames(plan), (Strings{"manual", "manual_1"}));
  EXPECT_EQ(plan.stages()[0].take->name(), "b/take");
}

TEST(StagePlanTest, AManualStageMayHaveNoRegion) {
  TestGraph graph;
  graph.Target("target", {graph.Stage("manual", {graph.Source("next")})});
  const StagePlan plan(*graph.get(), true, "");
  ASSERT_EQ(plan.stages().size(), 1);
  EXPECT_EQ(plan.stages().front().region, nullptr);
}

TEST(StagePlanTest, PutsBehindASwitchAreChecked) {
  TestGraph graph;
  Node* next = graph.Source("next");
  Node* small = graph.Less("small", next, graph.Const("five", 5));
  Node* chosen = graph.Switch("switch", next, small);
  graph.Stage("behind_switch", {graph.Neg("neg", chosen)});
  graph.Stage("plain", {next});
  for (const bool smart_stage : {false, true}) {
    const StagePlan plan(*graph.get(), smart_stage, "");
    ASSERT_EQ(plan.stages().size(), 2);
    EXPECT_TRUE(plan.stages()[0].check_puts);
    EXPECT_FALSE(plan.stages()[1].check_puts);
  }
}

TEST(StagePlanTest, MalformedStagesAreNotInThePlan) {
  TestGraph graph;
  graph.Target("target", {graph.Neg("a", graph.Take("no_put"))});
  graph.Put("put", "no_take", {graph.Const("value", 1)});
  graph.Put("one_put", "two_takes", {graph.Const("other_value", 1)});
  graph.Take("two_takes");
  NodeBuilder second("second_take", "TensorBufferTake");
  second.Attr("dtypes", DataTypeVector{DT_INT64})
      .Attr("shared_name", "two_takes");
  graph.Finalize(&second);
  EXPECT_EQ(StageNames(StagePlan(*graph.get(), true, "")), Strings());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
