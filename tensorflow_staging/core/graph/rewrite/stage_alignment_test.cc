// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StageAlignmentTest : public ::testing::Test {
 protected:
  Status Align(const NodeFilter& counts = {}) {
    return AlignStages(counts, content_, {}, graph_.get(), &late_);
  }

  // What a session does.
  Status AlignAndRewrite(bool smart_stage) {
    TF_RETURN_IF_ERROR(Align());
    const StagePlan plan(*graph_.get(), smart_stage, /*name=*/"");
    return RewriteStages(plan, {}, graph_.get());
  }

  std::string Op(const std::string& name) const {
    const Node* node = graph_.Find(name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  // The result of a conditional of version 1, one of whose branches reads. Its
  // predicate is not drawn.
  Node* ConditionalRead() {
    Node* predicate =
        graph_.Less("predicate", graph_.Const("a", 1), graph_.Const("b", 2));
    TestConditional conditional("cond", predicate, &graph_);
    Node* next = graph_.Source("next");
    graph_.AddControl(conditional.pivot(true), next);
    return conditional.Result(conditional.Const(false, "none", 0), next);
  }

  TestGraph graph_;
  RecordContent content_ = RecordContent::kElements;
  std::vector<LateStage> late_;
};

TEST_F(StageAlignmentTest, TheRecordCarriesTheLabelBesideTheStage) {
  Node* next = graph_.Source("next", 2);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", next)});
  graph_.Target("loss", {take, {next, 1}});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_EQ(Op("prefetch/region/next"), "IteratorGetNext");
  EXPECT_THAT(graph_.Inputs("prefetch/region/next"),
              ElementsAre("next_iterator"));
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/a", "prefetch/region/next",
                          "prefetch/region/next:1"));
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_THAT(graph_.Inputs("next"),
              ElementsAre("prefetch/TensorBufferTake:1",
                          "prefetch/TensorBufferTake:2"));
  EXPECT_THAT(graph_.Inputs("loss"),
              ElementsAre("prefetch/TensorBufferTake", "next:1"));
  // What the stage has staged already has a stand-in, too, once it is named.
  EXPECT_EQ(Op("a"), "Identity");
  EXPECT_THAT(graph_.Inputs("a"), ElementsAre("prefetch/TensorBufferTake"));
}

TEST_F(StageAlignmentTest, ARecordThatHasTheElementsDoesNotGrow) {
  Node* next = graph_.Source("next", 2);
  Node* take = graph_.Stage("prefetch", {{next, 1}, {next, 0}});
  graph_.Target("loss", {take, {next, 1}});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_EQ(graph_.Find("prefetch/TensorBufferTake"), take);
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/next:1", "prefetch/region/next"));
  EXPECT_THAT(graph_.Inputs("next"), ElementsAre("prefetch/TensorBufferTake:1",
                                                 "prefetch/TensorBufferTake"));
}

TEST_F(StageAlignmentTest, ConstantsVariablesAndHandlesAreShared) {
  Node* constant = graph_.Const("constant", 3);
  Node* variable = graph_.ReadVariable("variable");
  Node* shared = graph_.Neg("shared", constant);
  Node* staged = graph_.AddN("a", {graph_.Source("next"), shared, variable});
  Node* take = graph_.Stage("prefetch", {staged, constant});
  graph_.Target("loss", {take, shared, variable, constant});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("loss"),
              ElementsAre("prefetch/TensorBufferTake", "shared", "variable",
                          "constant"));
  EXPECT_THAT(
      graph_.Inputs("prefetch/TensorBufferPut"),
      ElementsAre("prefetch/region/a", "constant", "prefetch/region/next"));
}

TEST_F(StageAlignmentTest, AStageWithoutASourceStaysAsItIs) {
  Node* take = graph_.Stage("prefetch", {graph_.Const("constant", 3)});
  graph_.Target("loss", {take});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("constant"));
}

TEST_F(StageAlignmentTest, ADrawIsCarriedIfTheStepUsesIt) {
  Node* noise = graph_.Random("noise");
  Node* a = graph_.AddN("a", {graph_.Source("next"), noise});
  Node* take = graph_.Stage("prefetch", {a});
  graph_.Target("loss", {take, noise});
  content_ = RecordContent::kBoundaryOnly;
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/a", "prefetch/region/noise"));
  EXPECT_THAT(graph_.Inputs("noise"),
              ElementsAre("prefetch/TensorBufferTake:1"));
}

TEST_F(StageAlignmentTest, TwoStagesOnOneSourceBecomeAChain) {
  Node* next = graph_.Source("next", 2);
  Node* first = graph_.Stage("first", {graph_.Neg("a", next)});
  Node* second = graph_.Stage("second", {graph_.Neg("b", {next, 1})});
  graph_.Target("loss", {first, second, next});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("first/TensorBufferPut"),
              ElementsAre("first/region/a", "first/region/next",
                          "first/region/next:1"));
  // The stage before it yields what the second stage reads, and its records
  // carry all of that.
  EXPECT_EQ(Op("second/region/first/TensorBufferTake"), "TensorBufferTake");
  EXPECT_THAT(graph_.Inputs("second/region/next"),
              ElementsAre("second/region/first/TensorBufferTake:1",
                          "second/region/first/TensorBufferTake:2"));
  EXPECT_THAT(
      graph_.Inputs("second/TensorBufferPut"),
      ElementsAre("second/region/b", "second/region/first/TensorBufferTake",
                  "second/region/first/TensorBufferTake:1",
                  "second/region/first/TensorBufferTake:2"));
  EXPECT_EQ(Op("first/TensorBufferTake"), "StagedNode");
  EXPECT_THAT(
      graph_.Inputs("loss"),
      ElementsAre("first/TensorBufferTake", "second/TensorBufferTake", "next"));
  EXPECT_THAT(graph_.Inputs("next"), ElementsAre("second/TensorBufferTake:2",
                                                 "second/TensorBufferTake:3"));
}

TEST_F(StageAlignmentTest, TheLaterStageOfAChainCarriesWhatTheStepUses) {
  Node* next = graph_.Source("next", 2);
  // The graph has the later stage first.
  Node* last = graph_.Take("last");
  Node* first = graph_.Stage("first", {next});
  graph_.Put("last/TensorBufferPut", "last", {graph_.Neg("a", first)});
  graph_.Target("loss", {last, first, {next, 1}});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("first/TensorBufferPut"),
              ElementsAre("first/region/next", "first/region/next:1"));
  EXPECT_THAT(graph_.Inputs("last/TensorBufferPut"),
              ElementsAre("last/region/a", "last/region/first/TensorBufferTake",
                          "last/region/first/TensorBufferTake:1"));
  EXPECT_THAT(
      graph_.Inputs("first/TensorBufferTake"),
      ElementsAre("last/TensorBufferTake:1", "last/TensorBufferTake:2"));
  EXPECT_THAT(graph_.Inputs("next"), ElementsAre("first/TensorBufferTake",
                                                 "first/TensorBufferTake:1"));
}

TEST_F(StageAlignmentTest, AConditionalIsComputedAheadAsAWhole) {
  Node* next = graph_.Source("next");
  Node* predicate = graph_.Less("predicate", next, graph_.Const("limit", 3));
  Node* choice = graph_.Switch("choice", next, predicate);
  const auto result = [&](const std::string& name) {
    return graph_.Merge(name, {graph_.Neg(name + "/small", {choice, 1}),
                               graph_.Identity(name + "/large", {choice, 0})});
  };
  Node* take = graph_.Stage("prefetch", {result("a")});
  graph_.Target("loss", {take, result("b")});
  content_ = RecordContent::kBoundaryOnly;
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/a", "prefetch/region/b"));
  EXPECT_THAT(graph_.Inputs("loss"),
              ElementsAre("prefetch/TensorBufferTake", "b"));
  EXPECT_EQ(Op("choice"), "(none)");
}

TEST_F(StageAlignmentTest, ASwitchWhosePredicateIsNotDrawnIsNotCarried) {
  Node* result = ConditionalRead();
  Node* take = graph_.Stage("prefetch", {result});
  graph_.Target("loss", {take, result});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_EQ(Op("prefetch/region/cond/pivot"), "Switch");
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/cond/merge0",
                          "prefetch/region/cond/merge0:1"));
}

TEST_F(StageAlignmentTest, TheResultOfABranchWithASourceCanBeFetched) {
  Node* result = ConditionalRead();
  graph_.Target("loss", {graph_.Stage("prefetch", {graph_.Neg("c", result)})});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/c", "prefetch/region/cond/merge0",
                          "prefetch/region/cond/merge0:1"));
}

TEST_F(StageAlignmentTest, ACallOfAFunctionWithASourceIsASource) {
  const FunctionDef read = FunctionDefHelper::Create(
      "Read", {"handle: resource"}, {"element: int64"}, {},
      {{{"next"},
        "IteratorGetNext",
        {"handle"},
        {{"output_types", DataTypeVector{DT_INT64}},
         {"output_shapes", std::vector<PartialTensorShape>{TensorShape({})}}}}},
      {{"element", "next:components:0"}});
  graph_.AddFunction(read);
  NameAttrList function;
  function.set_name("Read");
  NodeBuilder builder("call", "StatefulPartitionedCall");
  builder
      .Input(
          std::vector<NodeBuilder::NodeOut>{{graph_.Iterator("iterator"), 0}})
      .Attr("Tin", DataTypeVector{DT_RESOURCE})
      .Attr("Tout", DataTypeVector{DT_INT64})
      .Attr("f", function);
  Node* call = graph_.Finalize(&builder);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", call)});
  graph_.Target("loss", {take, call});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/a", "prefetch/region/call"));
  EXPECT_THAT(graph_.Inputs("call"),
              ElementsAre("prefetch/TensorBufferTake:1"));
}

// tf.staged was called under control dependencies of the step.
TEST_F(StageAlignmentTest, NodesOfTheStepThatTheTakeWaitedForMayUseItsRecord) {
  Node* next = graph_.Source("next");
  Node* size = graph_.Neg("size", next);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", next)});
  graph_.AddControl(size, take);
  graph_.AddControl(next, take);
  graph_.Target("loss", {take});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferTake"), IsEmpty());
  EXPECT_THAT(graph_.Inputs("loss"),
              ElementsAre("prefetch/TensorBufferTake", "^size"));
  EXPECT_THAT(graph_.Inputs("size"), ElementsAre("next"));
}

// No record has an element of both sources.
TEST_F(StageAlignmentTest, AJoinCarriesNothing) {
  Node* a = graph_.Source("a");
  Node* b = graph_.Source("b");
  graph_.Put("put_a", "join", {a});
  graph_.Put("put_b", "join", {b});
  Node* take = graph_.Take("join");
  graph_.Target("loss", {take, a});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("put_a"), ElementsAre("join/region/a"));
  EXPECT_THAT(graph_.Inputs("put_b"), ElementsAre("join/region/b"));
  EXPECT_EQ(Op("a"), "StagedNode");
  EXPECT_THAT(graph_.Inputs("a"), ElementsAre("^join/TensorBufferTake"));
}

TEST_F(StageAlignmentTest, WhatIsAddedLaterDoesNotChangeTheRecord) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("b", a)});
  graph_.Target("loss", {take});
  graph_.Target("late", {a});
  content_ = RecordContent::kBoundaryOnly;
  ASSERT_EQ(
      Align(NodeFilter([](const Node& node) { return node.name() != "late"; })),
      OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/b"));
  // A run computes it from what is carried.
  EXPECT_THAT(graph_.Inputs("late"), ElementsAre("a"));
  EXPECT_EQ(Op("a"), "StagedNode");
}

TEST_F(StageAlignmentTest,
       AStageThatIsAddedLaterLeavesEarlierSourcesAsTheyAre) {
  Node* next = graph_.Source("next");
  graph_.Target("loss", {next});
  graph_.Target("late", {graph_.Stage("late_stage", {graph_.Neg("a", next)})});
  const std::set<std::string> early = {"next_iterator", "next", "loss"};
  ASSERT_EQ(Align(NodeFilter([&](const Node& node) {
              return early.count(node.name()) > 0;
            })),
            OkStatus());
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  EXPECT_THAT(graph_.Inputs("late_stage/TensorBufferPut"), ElementsAre("a"));
  ASSERT_EQ(late_.size(), 1);
  EXPECT_EQ(late_[0].name, "late_stage");
  EXPECT_EQ(late_[0].source, "next");
}

TEST_F(StageAlignmentTest,
       AStageThatIsAddedLaterToASourceOfARunningOneIsNamed) {
  Node* next = graph_.Source("next", 2);
  Node* first = graph_.Stage("first", {graph_.Neg("a", next)});
  graph_.Target("loss", {first});
  std::set<std::string> early;
  for (const Node* node : graph_.get()->op_nodes()) early.insert(node->name());
  Node* second = graph_.Stage("second", {graph_.Neg("b", {next, 1})});
  graph_.Target("late", {first, second});
  ASSERT_EQ(Align(NodeFilter([&](const Node& node) {
              return early.count(node.name()) > 0;
            })),
            OkStatus());
  ASSERT_EQ(late_.size(), 1);
  EXPECT_EQ(late_[0].name, "second");
}

TEST_F(StageAlignmentTest, WhatAStageFeedsLeadsNowhere) {
  Node* fed = graph_.Neg("fed", graph_.Source("unused"));
  fed->AddAttr("_staging_fed_outputs", std::vector<int>{0});
  Node* value = graph_.Source("value");
  value->AddAttr("_staging_feed_value", true);
  Node* a = graph_.AddN("a", {fed, graph_.Source("next")});
  graph_.Target("loss", {graph_.Stage("prefetch", {a}), fed});
  ASSERT_EQ(Align(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/region/a"),
              ElementsAre("fed", "prefetch/region/next"));
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/region/a", "prefetch/region/next"));
  EXPECT_TRUE(IsReadForFeeds(*graph_.Find("value")));
  EXPECT_TRUE(HasFeeds(*graph_.Find("prefetch/TensorBufferTake")));
}

TEST_F(StageAlignmentTest, AValueToFeedFromTheRegionIsAnError) {
  Node* next = graph_.Source("next");
  Node* value = graph_.Neg("value", next);
  value->AddAttr("_staging_feed_value", true);
  graph_.Stage("prefetch", {next});
  const Status status = Align();
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'value'"), HasSubstr("'next'"),
                    HasSubstr("Stage 'prefetch'")));
}

TEST_F(StageAlignmentTest, SmartStageExtendsAnAlignedStage) {
  Node* next = graph_.Source("next", 2);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", next)});
  Node* sum = graph_.AddN("sum", {take, graph_.Neg("b", {next, 1})});
  graph_.Target("loss", {sum, {next, 1}});
  ASSERT_EQ(AlignAndRewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/staged/sum"),
              ElementsAre("prefetch/region/a", "prefetch/staged/b"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/next"),
              ElementsAre("prefetch/region/next", "prefetch/region/next:1"));
  EXPECT_EQ(Op("sum"), "Identity");
  EXPECT_THAT(graph_.Inputs("loss"), ElementsAre("sum", "next:1"));
}

TEST_F(StageAlignmentTest, SmartStageLeavesAStageWithoutFurtherNodesAlone) {
  Node* next = graph_.Source("next", 2);
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", next)});
  graph_.Target("loss", {take, {next, 1}});
  ASSERT_EQ(AlignAndRewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_EQ(Op("prefetch/TensorBufferTake/record"), "(none)");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
