// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/graph_for_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// Builds and rewrites a graph, and finds the graph for a run of it.
class GraphForRunTest : public ::testing::Test {
 protected:
  void Rewrite() {
    const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"",
                         NodeFilter(), content_);
    TF_CHECK_OK(RewriteStages(plan, rewrite_, graph_.get()));
    for (Node* node : graph_.get()->op_nodes()) {
      node->set_assigned_device_name(kCpu);
    }
  }

  // As a session rewrites a graph with manual stages.
  void AlignAndRewrite() {
    TF_CHECK_OK(AlignStages(NodeFilter(), content_, rewrite_, graph_.get()));
    Rewrite();
  }

  // As a session without SmartStage does.
  void AlignStagesOnly() {
    TF_CHECK_OK(AlignStages(NodeFilter(), content_, rewrite_, graph_.get()));
    for (Node* node : graph_.get()->op_nodes()) {
      node->set_assigned_device_name(kCpu);
    }
  }

  // A source whose iterator has the handle `fed`.
  Node* AddSourceOfFedHandle() {
    NodeBuilder handle("handle", "IteratorFromStringHandleV2");
    Node* fed = graph_.Lone("fed", "Placeholder",
                            {{"dtype", TestGraph::Attr(DT_STRING)}});
    handle.Input(fed)
        .Attr("output_types", DataTypeVector{DT_INT64})
        .Attr("output_shapes",
              std::vector<PartialTensorShape>{TensorShape({})});
    return graph_.GetNext("next", graph_.Finalize(&handle));
  }

  void Feed(const Strings& tensors) {
    for (const std::string& tensor : tensors) run_.add_feed(tensor);
  }

  // Feeds to `to` the value that the run computes for `from`.
  void Connect(const std::string& from, const std::string& to) {
    TensorConnection* connection = run_.add_tensor_connection();
    connection->set_from_tensor(from);
    connection->set_to_tensor(to);
  }

  Status Fetch(const Strings& tensors) {
    for (const std::string& tensor : tensors) run_.add_fetch(tensor);
    return Ask();
  }

  Status RunTarget(const std::string& node) {
    run_.add_target(node);
    return Ask();
  }

  // The op of a node in the unstaged graph.
  std::string Op(const std::string& name) const {
    const Node* node = FindNode(*unstaged_, name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  // Whether the run executes the session's graph, or a part of it.
  bool IsUnchanged() const {
    if (unstaged_ == nullptr) return true;
    for (const Node* node : unstaged_->op_nodes()) {
      const Node* original = graph_.Find(node->name());
      if (original == nullptr ||
          original->type_string() != node->type_string() ||
          graph_.Inputs(node->name()) != Inputs(node->name())) {
        return false;
      }
    }
    return true;
  }

  Strings Inputs(const std::string& name) const {
    return InputsOf(*unstaged_, name);
  }

  TestGraph graph_;
  RecordContent content_ = RecordContent::kElements;
  RewriteOptions rewrite_;
  CallableOptions run_;
  std::unique_ptr<Graph> unstaged_;

 private:
  Status Ask() {
    // FindGraphForRun must reset the result of an earlier call.
    unstaged_ = std::make_unique<Graph>(OpRegistry::Global());
    const Status status = FindGraphForRun(*graph_.get(), run_, &unstaged_);
    run_.Clear();
    return status;
  }
};

TEST_F(GraphForRunTest, ATensorThatIsNotCarriedIsComputedFromTheElements) {
  Node* next = graph_.Source("next", 2);
  Node* a = graph_.Neg("a", {next, 0});
  Node* b = graph_.AddN("b", {a, graph_.Const("one", 1)});
  graph_.Target("target", {graph_.Neg("c", b), {next, 1}});
  Rewrite();
  EXPECT_EQ(Fetch({"c:0", "next:0", "next:1", "target:0"}), OkStatus());
  EXPECT_TRUE(IsUnchanged());
  ASSERT_EQ(graph_.Find("a"), nullptr);
  ASSERT_EQ(Fetch({"target:0", "b:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("b"), "AddN");
  EXPECT_THAT(Inputs("b"), ElementsAre("a", "one"));
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_EQ(FindNode(*unstaged_, "b")->assigned_device_name(), kCpu);
  // What the record carries is not computed again.
  EXPECT_THAT(Inputs("target"), ElementsAre("c", "next:1"));
  EXPECT_THAT(Inputs("c"), ElementsAre("prefetch/TensorBufferTake"));
  // The graph of the other runs has not changed.
  EXPECT_EQ(graph_.Find("b"), nullptr);
  // A node may be run by name.
  ASSERT_EQ(RunTarget("a"), OkStatus());
  EXPECT_THAT(Inputs("a"), ElementsAre("^next"));
}

TEST_F(GraphForRunTest, WithoutElementsOnlyWhatTheStepUsesCanBeFetched) {
  Node* next = graph_.Source("next", 2);
  graph_.Target("target", {graph_.Neg("a", {next, 0})});
  content_ = RecordContent::kBoundaryOnly;
  Rewrite();
  EXPECT_EQ(Fetch({"a:0", "next:1", "target:0"}), OkStatus());
  EXPECT_TRUE(IsUnchanged());
  const Status status = Fetch({"target:0", "next:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'next:0'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 'prefetch'"));
  EXPECT_TRUE(IsUnchanged());
  EXPECT_EQ(RunTarget("next"), OkStatus());
}

// A number must not be drawn twice for one record.
TEST_F(GraphForRunTest, ADrawThatIsNotCarriedCannotBeFetched) {
  Node* next = graph_.Source("next");
  Node* draw = graph_.Random("draw");
  Node* a = graph_.AddN("a", {next, draw});
  graph_.Target("target", {graph_.Neg("b", a)});
  Rewrite();
  for (const char* tensor : {"draw:0", "a:0"}) {
    const Status status = Fetch({"target:0", tensor});
    EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'draw:0'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("stage 'prefetch'"));
  }
  EXPECT_EQ(Fetch({"target:0", "b:0", "next:0"}), OkStatus());
  // Running the node takes a record, in which the number has been drawn.
  ASSERT_EQ(RunTarget("a"), OkStatus());
  EXPECT_THAT(Inputs("a"), ElementsAre("^next"));
}

// Without the stage, such a run would advance one of the sources.
TEST_F(GraphForRunTest, ARunOfOneSourceReadsItBesideTheStage) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  Node* b = graph_.Neg("b", graph_.Source("other"));
  graph_.Target("target", {graph_.AddN("sum", {a, b})});
  Rewrite();
  ASSERT_EQ(Fetch({"a:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  EXPECT_THAT(Inputs("next"), ElementsAre("next_iterator"));
  EXPECT_EQ(Op("other"), "(none)");
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
  ASSERT_EQ(RunTarget("a"), OkStatus());
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  ASSERT_EQ(Fetch({"next:0"}), OkStatus());
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  for (const Strings& fetches :
       {Strings{"a:0", "target:0"}, {"a:0", "b:0"}, {"next:0", "sum:0"}}) {
    ASSERT_EQ(Fetch(fetches), OkStatus());
    EXPECT_NE(Op("next"), "IteratorGetNext");
  }
}

// Builds, for each of two towers k, iterator --> next_k --> h_k --> loss_k, with
// an update that needs all losses.
class TowersForRunTest : public GraphForRunTest {
 protected:
  // With `draws`, a tower adds a random number.
  void AddTowers(bool draws = false) {
    Node* iterator = graph_.Iterator("iterator", 2);
    Node* weight = graph_.ReadVariable("weight");
    TestGraph::Outs losses;
    for (const std::string k : {"0", "1"}) {
      Node* next = graph_.GetNext("next_" + k, iterator, 2);
      TestGraph::Outs terms = {{next, 0}, graph_.Const("constant_" + k, 1)};
      if (draws) terms.push_back(graph_.Random("draw_" + k));
      Node* h = graph_.AddN("h_" + k, terms);
      losses.push_back(graph_.AddN("loss_" + k, {h, {next, 1}, weight}));
    }
    NodeBuilder update("train", "AssignAddVariableOp");
    update.Input(const_cast<Node*>(graph_.Find("weight_handle")))
        .Input(graph_.AddN("loss", losses))
        .Attr("dtype", DT_INT64);
    graph_.Finalize(&update);
    const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"",
                         NodeFilter(), content_, AlignedWith::kTraining);
    TF_CHECK_OK(RewriteStages(plan, rewrite_, graph_.get()));
    for (Node* node : graph_.get()->op_nodes()) {
      node->set_assigned_device_name(kCpu);
    }
    ASSERT_NE(graph_.Find("prefetch/staged/h_1"), nullptr);
  }

  void ExpectRecord() {
    const Graph& graph = unstaged_ == nullptr ? *graph_.get() : *unstaged_;
    for (const char* name : {"next_0", "next_1"}) {
      const Node* node = FindNode(graph, name);
      EXPECT_TRUE(node == nullptr || IsStandIn(*node)) << name;
    }
    EXPECT_NE(FindNode(graph, "prefetch/TensorBufferTake"), nullptr);
  }

  void ExpectOnlyTheFirstTower() const {
    ASSERT_NE(unstaged_, nullptr);
    EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
    EXPECT_EQ(Op("next_0"), "IteratorGetNext");
    EXPECT_EQ(Op("next_1"), "(none)");
    EXPECT_THAT(Inputs("next_0"), ElementsAre("iterator"));
  }
};

TEST_F(TowersForRunTest, ARunOfAllTowersTakesARecord) {
  AddTowers();
  for (const Strings& fetches :
       {Strings{"loss:0"}, {"loss_0:0", "loss_1:0"}, {"next_0:0", "h_1:0"}}) {
    ASSERT_EQ(Fetch(fetches), OkStatus());
    ExpectRecord();
  }
  ASSERT_EQ(RunTarget("train"), OkStatus());
  ExpectRecord();
}

TEST_F(TowersForRunTest, ARunOfOneTowerReadsItsElement) {
  for (const RecordContent content :
       {RecordContent::kElements, RecordContent::kBoundaryOnly}) {
    content_ = content;
    graph_.get()->Clear();
    AddTowers();
    for (const char* tensor : {"loss_0:0", "h_0:0"}) {
      ASSERT_EQ(Fetch({tensor, "weight:0"}), OkStatus());
      ExpectOnlyTheFirstTower();
      EXPECT_THAT(Inputs("h_0"), ElementsAre("next_0", "constant_0"));
    }
    for (const char* tensor : {"next_0:0", "next_0:1"}) {
      ASSERT_EQ(Fetch({tensor}), OkStatus());
      ExpectOnlyTheFirstTower();
    }
    for (const char* node : {"loss_0", "h_0", "next_0"}) {
      ASSERT_EQ(RunTarget(node), OkStatus());
      ExpectOnlyTheFirstTower();
    }
  }
}

// It would draw without the stage.
TEST_F(TowersForRunTest, ARunOfOneTowerDraws) {
  AddTowers(/*draws=*/true);
  ASSERT_EQ(Fetch({"loss_0:0"}), OkStatus());
  ExpectOnlyTheFirstTower();
  EXPECT_THAT(Inputs("h_0"), ElementsAre("next_0", "constant_0", "draw_0"));
  EXPECT_EQ(Op("draw_0"), "RandomUniformInt");
  // The record has what was drawn for it.
  EXPECT_TRUE(errors::IsFailedPrecondition(Fetch({"loss:0", "draw_0:0"})));
}

TEST_F(TowersForRunTest, ARunThatFeedsOneTowerReadsTheElementOfTheOther) {
  AddTowers();
  Feed({"next_1:0", "next_1:1"});
  ASSERT_EQ(Fetch({"loss:0"}), OkStatus());
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
  EXPECT_EQ(Op("next_0"), "IteratorGetNext");
  EXPECT_NE(Op("next_1"), "IteratorGetNext");
  EXPECT_THAT(Inputs("h_1"), ElementsAre("next_1", "constant_1"));
  // The other output of the element is not fed.
  Feed({"next_1:0"});
  ASSERT_EQ(Fetch({"loss:0"}), OkStatus());
  ExpectRecord();
  Feed({"next_0:0", "next_0:1", "next_1:0", "next_1:1"});
  ASSERT_EQ(Fetch({"loss:0"}), OkStatus());
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
  EXPECT_NE(Op("next_0"), "IteratorGetNext");
}

TEST_F(TowersForRunTest, AFedConstantOfOneTower) {
  AddTowers();
  Feed({"constant_1:0"});
  ASSERT_EQ(Fetch({"loss:0"}), OkStatus());
  ExpectRecord();
  EXPECT_THAT(Inputs("h_1"), ElementsAre("next_1", "constant_1"));
  Feed({"constant_0:0"});
  ASSERT_EQ(Fetch({"loss_0:0"}), OkStatus());
  ExpectOnlyTheFirstTower();
}

TEST_F(TowersForRunTest, ARunThatAlsoTakesTheRecordItselfUsesIt) {
  AddTowers();
  ASSERT_EQ(Fetch({"loss_0:0", "prefetch/TensorBufferTake:0"}), OkStatus());
  ExpectRecord();
}

TEST_F(GraphForRunTest, ASmallPartOfTheGraphIsCopiedForASmallRun) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  for (int i = 0; i < 30; ++i) graph_.Const(strings::StrCat("constant", i), i);
  Rewrite();
  ASSERT_EQ(RunTarget("prefetch/TensorBufferClose"), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(unstaged_->num_op_nodes(), 3);
  EXPECT_THAT(Inputs("prefetch/TensorBufferClose"),
              ElementsAre("prefetch/error_code", "prefetch/error_message"));
}

TEST_F(GraphForRunTest, ACallIsLeftInAGraphThatIsLargeEnoughToInlineIt) {
  graph_.Target("target", {graph_.Source("next")});
  NameAttrList function;
  function.set_name("f");
  NodeBuilder call("call", "PartitionedCall");
  call.Input(TestGraph::Outs{graph_.Const("one", 1)})
      .Attr("Tout", DataTypeVector{DT_INT64})
      .Attr("f", function);
  Node* called = graph_.Finalize(&call);
  graph_.Neg("neg", graph_.Neg("minus_one", called));
  Rewrite();
  ASSERT_EQ(Fetch({"call:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  ASSERT_EQ(Fetch({"neg:0"}), OkStatus());
  EXPECT_EQ(unstaged_->num_op_nodes(), 4);
  ASSERT_EQ(Fetch({"one:0"}), OkStatus());
  EXPECT_EQ(unstaged_->num_op_nodes(), 1);
}

TEST_F(GraphForRunTest, FeedingATensorThatNoRegionUsesChangesNothing) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  Rewrite();
  Feed({"a:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_TRUE(IsUnchanged());
}

TEST_F(GraphForRunTest, ARunThatFeedsEverythingComputesInTheStep) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  graph_.Target("target", {graph_.Neg("b", a)});
  Rewrite();
  Feed({"next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("a"), "Neg");
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
  EXPECT_EQ(Op("b"), "Neg");
  EXPECT_THAT(Inputs("b"), ElementsAre("a"));
  EXPECT_THAT(Inputs("target"), ElementsAre("b"));
  // The graph of the other runs has not changed.
  EXPECT_EQ(graph_.Find("a"), nullptr);
  EXPECT_EQ(graph_.Find("prefetch/staged/a")->type_string(), "Neg");
}

// An optimizer may make the run wait for a source that it does not need.
TEST_F(GraphForRunTest, ARunThatFeedsEverythingReachesNoSource) {
  Node* next = graph_.Source("next");
  Node* iterator = const_cast<Node*>(graph_.Find("next_iterator"));
  graph_.InitializeWithRange("initialize", iterator, 0, 10);
  graph_.Target("target", {graph_.Neg("a", next)});
  Rewrite();
  Feed({"next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_THAT(Inputs("next"), IsEmpty());
  EXPECT_EQ(FindNode(*unstaged_, "next")->assigned_device_name(), kCpu);
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
}

TEST_F(GraphForRunTest, AFedTensorMayLieInsideTheRegion) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  graph_.Target("target", {graph_.Neg("b", a)});
  Rewrite();
  Feed({"a:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("b"), ElementsAre("a"));
}

TEST_F(GraphForRunTest, ARunThatFeedsAPartTakesTheRestFromTheRecord) {
  Node* next = graph_.Source("next", 2);
  Node* a = graph_.Neg("a", {next, 0});
  graph_.Target("target", {graph_.AddN("b", {a, {next, 1}})});
  Rewrite();
  for (const char* fed : {"next:1", "a:0"}) {
    Feed({fed});
    ASSERT_EQ(Fetch({"target:0"}), OkStatus());
    ASSERT_NE(unstaged_, nullptr);
    EXPECT_EQ(Op("b"), "AddN");
    EXPECT_THAT(Inputs("b"), ElementsAre("a", "next:1"));
    EXPECT_THAT(Inputs("target"), ElementsAre("b"));
    EXPECT_THAT(Inputs("next"), ElementsAre("prefetch/TensorBufferTake:1",
                                            "prefetch/TensorBufferTake:2"));
  }
}

TEST_F(GraphForRunTest, WithoutElementsARunThatFeedsAPartIsRefused) {
  Node* next = graph_.Source("next", 2);
  graph_.Target("target", {graph_.AddN("a", {{next, 0}, {next, 1}})});
  content_ = RecordContent::kBoundaryOnly;
  Rewrite();
  Feed({"next:1"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("Tensor 'next:1' is fed"));
  EXPECT_THAT(message, HasSubstr("in stage 'prefetch'"));
  EXPECT_THAT(message, HasSubstr("the step also needs 'next:0'"));
  EXPECT_TRUE(IsUnchanged());

  Feed({"next:1"});
  EXPECT_TRUE(errors::IsInvalidArgument(RunTarget("target")));

  Feed({"next:0", "next:1"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_NE(unstaged_, nullptr);
}

// The clones use the constant of the graph, whatever a step feeds.
TEST_F(GraphForRunTest, ARunThatFeedsAConstantComputesWhatUsesIt) {
  Node* constant = graph_.Const("constant", 3);
  Node* a = graph_.AddN(
      "a", {graph_.Source("next"), graph_.Neg("negative", constant)});
  graph_.Target("target", {a});
  graph_.Target("other", {constant});
  Rewrite();
  for (const char* fed : {"constant:0", "negative:0"}) {
    Feed({fed});
    ASSERT_EQ(Fetch({"target:0"}), OkStatus());
    ASSERT_NE(unstaged_, nullptr);
    EXPECT_EQ(Op("a"), "AddN");
    EXPECT_THAT(Inputs("a"), ElementsAre("next", "negative"));
    EXPECT_THAT(Inputs("next"), ElementsAre("prefetch/TensorBufferTake:1"));
  }
  // These runs need no record, or compute with the fed value.
  Feed({"constant:0"});
  EXPECT_EQ(Fetch({"other:0"}), OkStatus());
  EXPECT_EQ(Op("a"), "(none)");
  Feed({"constant:0", "a:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  Feed({"constant:0", "next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a"), ElementsAre("next", "negative"));
  EXPECT_THAT(Inputs("next"), IsEmpty());
}

TEST_F(GraphForRunTest, AnUnstagedRunUsesAFedConstantInsteadOfItsCpuCopy) {
  Node* a =
      graph_.AddN("a", {graph_.Source("next"), graph_.Const("constant", 3)});
  graph_.Target("target", {a});
  rewrite_.on_cpu = true;
  Rewrite();
  for (const Strings& fed :
       {Strings{"constant:0"}, Strings{"constant:0", "next:0"}}) {
    Feed(fed);
    ASSERT_EQ(Fetch({"target:0"}), OkStatus());
    ASSERT_NE(unstaged_, nullptr);
    EXPECT_THAT(Inputs("a"), ElementsAre("next", "constant"));
  }
}

TEST_F(GraphForRunTest, UnstagedRegionsOfSeveralStagesUseOneFedConstant) {
  Node* constant = graph_.Const("constant", 3);
  for (const char* i : {"1", "2"}) {
    Node* a =
        graph_.AddN(strings::StrCat("a", i),
                    {graph_.Source(strings::StrCat("next", i)), constant});
    graph_.Target(strings::StrCat("target", i), {a});
  }
  rewrite_.on_cpu = true;
  Rewrite();
  Feed({"constant:0", "next1:0", "next2:0"});
  ASSERT_EQ(Fetch({"target1:0", "target2:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a1"), ElementsAre("next1", "constant"));
  EXPECT_THAT(Inputs("a2"), ElementsAre("next2", "constant"));
}

// The run of a stage feeds a placeholder that the stage uses.
TEST_F(GraphForRunTest, ANodeThatLeadsToAPutMayBeFed) {
  Node* fed = graph_.Placeholder("fed");
  Node* take = graph_.Stage(
      "manual", {graph_.AddN("staged", {graph_.Source("next"), fed})});
  graph_.Target("target", {graph_.Neg("a", take), fed});
  Rewrite();
  Feed({"fed:0"});
  EXPECT_EQ(RunTarget("manual/TensorBufferPut"), OkStatus());
  EXPECT_TRUE(IsUnchanged());
}

// A feed replaces a value, but a node that waits for the source still makes it
// advance.
TEST_F(GraphForRunTest, ARunThatWaitsForAFedSourceTakesARecord) {
  Node* next = graph_.Source("next");
  Node* target = graph_.Target("target", {graph_.Neg("a", next)});
  graph_.AddControl(next, target);
  Rewrite();
  Feed({"next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "TensorBufferTake");
  EXPECT_THAT(Inputs("target"), ElementsAre("a", "^next"));
}

TEST_F(GraphForRunTest, FetchingAFedTensorNeedsNoRecord) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  Rewrite();
  Feed({"next:0"});
  EXPECT_EQ(Fetch({"target:0", "next:0"}), OkStatus());
  EXPECT_NE(unstaged_, nullptr);
}

TEST_F(GraphForRunTest, AConnectionFeeds) {
  Node* next = graph_.Source("next", 2);
  Node* a = graph_.Neg("a", {next, 0});
  graph_.Target("target", {a, graph_.Neg("b", {next, 1})});
  graph_.Const("value", 1);
  Rewrite();
  Connect("value:0", "next:0");
  ASSERT_EQ(Fetch({"a:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
  // The run must also compute the value that it feeds.
  Connect("b:0", "next:0");
  ASSERT_EQ(Fetch({"a:0"}), OkStatus());
  EXPECT_THAT(Inputs("b"), ElementsAre("prefetch/TensorBufferTake:1"));
  Connect("b:0", "next:0");
  Feed({"next:1"});
  EXPECT_EQ(Fetch({"a:0"}), OkStatus());
  EXPECT_NE(unstaged_, nullptr);
}

TEST_F(GraphForRunTest, AManualStageWhoseTakeIsFedComputesInTheStep) {
  Node* take =
      graph_.Stage("manual", {graph_.Source("next"), graph_.Source("other")});
  Node* a = graph_.AddN("a", {{take, 1}, {take, 0}});
  graph_.Target("target", {graph_.Neg("b", a)});
  Rewrite();
  Feed({"manual/TensorBufferTake:0", "manual/TensorBufferTake:1"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("a"), "AddN");
  EXPECT_THAT(Inputs("a"), ElementsAre("manual/TensorBufferTake:1",
                                       "manual/TensorBufferTake"));
  EXPECT_THAT(Inputs("b"), ElementsAre("a"));
  EXPECT_EQ(Op("manual/TensorBufferTake"), "StagedNode");
  EXPECT_THAT(Inputs("manual/TensorBufferTake"), IsEmpty());
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "(none)");

  Feed({"manual/TensorBufferTake:1"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_THAT(Inputs("a"), ElementsAre("manual/TensorBufferTake:1",
                                       "manual/TensorBufferTake"));
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "TensorBufferTake");
}

// As for a source: a node that waits for the Take makes it take a record.
TEST_F(GraphForRunTest, ARunThatWaitsForAFedTakeTakesARecord) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  Node* waits = graph_.Neg("waits", graph_.Const("value", 1));
  graph_.AddControl(take, waits);
  graph_.Target("target", {graph_.AddN("a", {take, waits})});
  Rewrite();
  Feed({"manual/TensorBufferTake:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "TensorBufferTake");
}

TEST_F(GraphForRunTest, OneOfTheClonesForSeveralPutsGetsTheOriginalName) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  graph_.Put("other_put", "manual", {graph_.Source("other_next")});
  graph_.Target("target", {graph_.Neg("a", take)});
  Rewrite();
  Feed({"manual/TensorBufferTake:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("a"), "Neg");
  EXPECT_THAT(Inputs("a"), ElementsAre("manual/TensorBufferTake"));
  EXPECT_THAT(Inputs("target"), ElementsAre("a"));
}

// Marks are part of a graph, and any client of a server can send a graph.
TEST_F(GraphForRunTest, AMalformedMarkIsRefused) {
  Node* fed = graph_.Neg("fed", graph_.Const("constant", 3));
  graph_.Target("target", {fed});
  fed->AddAttr(kStandInAttr, 3);
  Feed({"fed:0"});
  // Without stages, nobody reads the marks.
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  graph_.Stage("manual", {fed});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kStandInAttr));
  EXPECT_TRUE(IsUnchanged());
}

TEST_F(GraphForRunTest, AMarkThatPassesOnWhatNobodyComputesIsRefused) {
  Node* passes = graph_.Const("passes", 1);
  Node* uses = graph_.Neg("uses", passes);
  graph_.Stage("manual", {graph_.Source("next")});
  MarkClone({"manual", "missing", {}, "other"}, passes);
  MarkClone({"manual", "used", {}, std::nullopt}, uses);
  const Status status = Fetch({"used:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'missing'"));
}

TEST_F(GraphForRunTest, MarksThatLeadToAnotherTypeAreRefused) {
  Node* next = graph_.Source("next");
  graph_.Target("target", {graph_.Neg("a", next)});
  Rewrite();
  // The clone loses its mark, and another node pretends to be the clone.
  Node* clone = const_cast<Node*>(graph_.Find("prefetch/staged/a"));
  clone->ClearAttr(kOriginalAttr);
  clone->AddAttr(kOriginalAttr, "somewhere");
  Node* source = const_cast<Node*>(graph_.Find("prefetch/staged/next"));
  Node* two = graph_.IdentityN("two", {{source, 0}, {source, 0}});
  MarkClone({"prefetch", "a", {}}, two);
  Feed({"next:0"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has other types"));
  EXPECT_TRUE(IsUnchanged());
}

// A conditional of constants: what it yields depends on the predicate only
// through the control edges from the pivots.
class ConditionalForRunTest : public GraphForRunTest {
 protected:
  void SetUp() override {
    Node* next = graph_.Source("next");
    Node* less = graph_.Less("less", next, graph_.Const("five", 5));
    TestConditional cond("cond", less, &graph_);
    Node* merge = cond.Result(cond.Const(false, "cond/no", 0),
                              cond.Const(true, "cond/yes", 1));
    Node* negated = graph_.Neg("negated", merge);
    graph_.Target("target", {graph_.AddN("sum", {next, negated})});
    // Nodes without inputs have an edge from the graph's own source node.
    FixupSourceAndSinkEdges(graph_.get());
    Rewrite();
    FixupSourceAndSinkEdges(graph_.get());
  }

  void ExpectConditionalInTheStep() {
    EXPECT_THAT(Inputs("cond/merge0"), ElementsAre("cond/no", "cond/yes"));
    EXPECT_THAT(Inputs("cond/yes"), ElementsAre("^cond/switch_t"));
    EXPECT_THAT(Inputs("cond/no"), ElementsAre("^cond/switch_f"));
    EXPECT_THAT(Inputs("cond/switch_t"), ElementsAre("cond/pivot:1"));
    EXPECT_THAT(Inputs("cond/pivot"), ElementsAre("less", "less"));
  }
};

TEST_F(ConditionalForRunTest, AResultThatIsNotCarriedIsComputed) {
  ASSERT_EQ(Fetch({"target:0", "cond/merge0:0"}), OkStatus());
  ExpectConditionalInTheStep();
  EXPECT_THAT(Inputs("less"), ElementsAre("next", "five"));
  // The step uses what the record carries.
  EXPECT_THAT(Inputs("sum"), ElementsAre("prefetch/TensorBufferTake:1"));
  EXPECT_EQ(Op("negated"), "(none)");
}

TEST_F(ConditionalForRunTest, ATensorOfABranchIsComputedIfTheBranchIsChosen) {
  ASSERT_EQ(Fetch({"cond/yes:0"}), OkStatus());
  EXPECT_THAT(Inputs("cond/yes"), ElementsAre("^cond/switch_t"));
  EXPECT_THAT(Inputs("cond/pivot"), ElementsAre("less", "less"));
}

TEST_F(ConditionalForRunTest, AFedPredicateReachesTheConstantsOfTheBranches) {
  Feed({"less:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  ExpectConditionalInTheStep();
  EXPECT_THAT(Inputs("sum"), ElementsAre("next", "negated"));
  EXPECT_THAT(Inputs("negated"), ElementsAre("cond/merge0"));
}

TEST_F(ConditionalForRunTest, AFedPivotReachesTheConstantsOfItsBranch) {
  Feed({"cond/switch_t:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("cond/merge0"), ElementsAre("cond/no", "cond/yes"));
  EXPECT_THAT(Inputs("sum"), ElementsAre("next", "negated"));
}

TEST_F(ConditionalForRunTest, WhatUsesAFedResultIsComputed) {
  Feed({"cond/merge0:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("negated"), ElementsAre("cond/merge0"));
  EXPECT_EQ(Op("cond/pivot"), "(none)");
}

// The constants in the body of a loop wait for one of its variables.
TEST_F(GraphForRunTest, ALoopIsComputedWithTheConstantsOfItsBody) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 3), &graph_);
  Node* one = graph_.Const("loop/one", 1);
  graph_.AddControl(loop.body()[0], one);
  Node* exit = loop.Close({graph_.AddN("loop/add", {loop.body()[0], one})})[0];
  graph_.Target("target", {graph_.AddN("sum", {next, exit})});
  FixupSourceAndSinkEdges(graph_.get());
  Rewrite();
  FixupSourceAndSinkEdges(graph_.get());
  const auto expect_loop = [this] {
    EXPECT_THAT(Inputs("loop/exit0"), ElementsAre("loop/switch0"));
    EXPECT_THAT(Inputs("loop/merge0"),
                ElementsAre("loop/enter0", "loop/next0"));
    EXPECT_THAT(Inputs("loop/one"), ElementsAre("^loop/body0"));
    for (const char* enter : {"loop/enter0", "loop/invariant0"}) {
      std::string frame;
      TF_CHECK_OK(GetNodeAttr(FindNode(*unstaged_, enter)->attrs(),
                              kFrameNameAttr, &frame));
      EXPECT_EQ(frame, "loop");
    }
  };
  ASSERT_EQ(Fetch({"target:0", "loop/exit0:0"}), OkStatus());
  expect_loop();
  EXPECT_THAT(Inputs("loop/enter0"), ElementsAre("next"));
  for (const char* fed : {"next:0", "limit:0"}) {
    Feed({fed});
    ASSERT_EQ(Fetch({"target:0"}), OkStatus()) << fed;
    ASSERT_NE(unstaged_, nullptr);
    expect_loop();
    EXPECT_THAT(Inputs("sum"), ElementsAre("next", "loop/exit0"));
  }
}

// One of the loops is the clone, and the other computes a fetch.
TEST_F(GraphForRunTest, ALoopOnBothSidesHasTwoFrames) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  TestLoop loop("loop", {take}, graph_.Const("limit", 3), &graph_);
  Node* exit = loop.Close({graph_.Neg("loop/neg", loop.body()[0])})[0];
  graph_.Target("target", {graph_.Neg("negated", exit)});
  Rewrite();
  run_.add_target("manual/TensorBufferPut");
  ASSERT_EQ(Fetch({"loop/exit0:0"}), OkStatus());
  std::vector<ControlFlowInfo> frames;
  EXPECT_EQ(BuildControlFlowInfo(unstaged_.get(), &frames), OkStatus());
  EXPECT_EQ(Op("loop/enter0"), "Enter");
  EXPECT_EQ(Op("manual/staged/loop/enter0"), "Enter");
  std::string frame;
  TF_CHECK_OK(GetNodeAttr(FindNode(*unstaged_, "loop/enter0")->attrs(),
                          kFrameNameAttr, &frame));
  EXPECT_EQ(frame, "loop");
}

TEST_F(GraphForRunTest, OtherStagesAreNotUnstaged) {
  for (const char* i : {"1", "2"}) {
    Node* a = graph_.Neg(strings::StrCat("a", i),
                         graph_.Source(strings::StrCat("next", i)));
    graph_.Target(strings::StrCat("target", i),
                  {graph_.Neg(strings::StrCat("b", i), a)});
  }
  Rewrite();
  Feed({"next1:0"});
  ASSERT_EQ(Fetch({"target1:0", "target2:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a1"), ElementsAre("next1"));
  EXPECT_EQ(Op("next1"), "StagedNode");
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
  EXPECT_EQ(Op("prefetch_1/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("a2"), "(none)");
  EXPECT_THAT(Inputs("b2"), ElementsAre("prefetch_1/TensorBufferTake"));

  Feed({"next1:0"});
  ASSERT_EQ(Fetch({"target1:0", "a2:0"}), OkStatus());
  EXPECT_THAT(Inputs("a2"), ElementsAre("next2"));
}

TEST_F(GraphForRunTest, ATensorBeforeAManualStageIsComputedFromTheElements) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  graph_.Target("target", {graph_.Stage("prefetch", {graph_.Neg("b", a)})});
  AlignAndRewrite();
  ASSERT_EQ(Fetch({"target:0", "a:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("a"), "Neg");
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
  EXPECT_THAT(Inputs("next"), ElementsAre("prefetch/TensorBufferTake:1"));
  EXPECT_THAT(Inputs("target"), ElementsAre("prefetch/TensorBufferTake"));
}

TEST_F(GraphForRunTest, ARunOfAManualStageNeedsAllItsSourcesOrItsRecord) {
  Node* a = graph_.Source("a");
  Node* b = graph_.Source("b");
  graph_.Target("target", {graph_.Stage("prefetch", {a, b})});
  AlignAndRewrite();
  EXPECT_EQ(Fetch({"a:0", "b:0"}), OkStatus());
  EXPECT_EQ(Fetch({"a:0", "target:0"}), OkStatus());
  EXPECT_EQ(Fetch({"a:0", "prefetch/TensorBufferTake:0"}), OkStatus());
  const Status status = Fetch({"a:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("but not of 'b'"));
}

TEST_F(GraphForRunTest, ASourceIsReadInTheStepIfTheRunFeedsItsHandle) {
  Node* next = AddSourceOfFedHandle();
  graph_.Target("target", {graph_.Stage("prefetch", {graph_.Neg("a", next)})});
  graph_.Neg("evaluation", next);
  AlignAndRewrite();
  Feed({"fed:0"});
  ASSERT_EQ(Fetch({"evaluation:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  EXPECT_THAT(Inputs("next"), ElementsAre("handle"));
  Feed({"fed:0"});
  const Status status = Fetch({"evaluation:0", "target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fed:0' is fed, but"));
}

TEST_F(GraphForRunTest, WhatWaitsForASourceWaitsForTheOneThatTheStepReads) {
  Node* next = AddSourceOfFedHandle();
  Node* a = graph_.Neg("a", next);
  Node* group = graph_.Lone("group", "NoOp", {});
  graph_.get()->AddControlEdge(a, group);
  Node* b = graph_.Neg("b", a);
  graph_.get()->AddControlEdge(group, b);
  graph_.Target("target", {graph_.Stage("prefetch", {b})});
  AlignAndRewrite();
  Feed({"fed:0"});
  ASSERT_EQ(Fetch({"b:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("next"), "IteratorGetNext");
  EXPECT_THAT(Inputs("b"), ElementsAre("a", "^group"));
}

TEST_F(GraphForRunTest, WaitingForWhatIsFedTakesNoRecord) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  Node* group = graph_.Lone("group", "NoOp", {});
  graph_.get()->AddControlEdge(a, group);
  Node* b = graph_.Neg("b", a);
  graph_.get()->AddControlEdge(group, b);
  // The step waits for it, too, so that it has a stand-in.
  Node* evaluation = graph_.Neg("evaluation", graph_.Const("one", 1));
  graph_.get()->AddControlEdge(group, evaluation);
  graph_.Target("target", {graph_.Stage("prefetch", {b}), evaluation});
  AlignAndRewrite();
  Feed({"next:0"});
  ASSERT_EQ(Fetch({"b:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "(none)");
  EXPECT_THAT(Inputs("group"), ElementsAre("^a"));
}

TEST_F(GraphForRunTest, AFedRecordIsNotTakenBesideASourceThatTheStepReads) {
  Node* next = AddSourceOfFedHandle();
  Node* take = graph_.Stage("prefetch", {graph_.Neg("a", next)});
  graph_.Target("target", {graph_.Neg("b", take)});
  graph_.Neg("evaluation", next);
  AlignStagesOnly();
  Feed({"fed:0", "prefetch/TensorBufferTake:0"});
  ASSERT_EQ(Fetch({"evaluation:0", "b:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("next"), "IteratorGetNext");
}

// A run that feeds what a manual stage uses ahead of the step would mix the fed
// value with the record's.
class FedRecordsTest : public GraphForRunTest {
 protected:
  void ExpectError(const std::string& fed) {
    Feed({fed});
    const Status status = Fetch({"target:0"});
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(strings::StrCat("'", fed, "' is fed, but")),
                      HasSubstr("a record of stage '"),
                      HasSubstr("Feed what tf.staged has returned")));
  }
};

TEST_F(FedRecordsTest, AHandleOfAnElementThatTheRecordOnlyWaitsFor) {
  Node* a = graph_.Neg("a", graph_.Const("one", 1));
  graph_.get()->AddControlEdge(AddSourceOfFedHandle(), a);
  graph_.Target("target", {graph_.Stage("prefetch", {a})});
  AlignAndRewrite();
  ExpectError("fed:0");
}

TEST_F(FedRecordsTest, AHandleOfAnElementThatTheRecordBeforeWaitsFor) {
  Node* first = graph_.Stage("first", {AddSourceOfFedHandle()});
  Node* a = graph_.Neg("a", graph_.Const("one", 1));
  graph_.get()->AddControlEdge(first, a);
  graph_.Target("target", {graph_.Stage("second", {a})});
  AlignAndRewrite();
  ExpectError("fed:0");
}

TEST_F(FedRecordsTest, WhatAStageUsesCannotBeFedToItsStep) {
  Node* next = graph_.Source("next", 2);
  Node* take = graph_.Stage("manual", {graph_.Neg("a", {next, 0})});
  graph_.Target("target", {take});
  graph_.Target("label", {{next, 1}});
  AlignAndRewrite();
  ExpectError("next:0");
  ExpectError("a:0");
  // Nothing is mixed.
  Feed({"next:1"});
  EXPECT_EQ(Fetch({"target:0", "label:0"}), OkStatus());
  Feed({"next:0"});
  EXPECT_EQ(Fetch({"label:0"}), OkStatus());
  Feed({"next:0"});
  EXPECT_EQ(Fetch({"a:0"}), OkStatus());
  Feed({"next:0", "manual/TensorBufferTake:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  Feed({"next:0"});
  const Status status = Fetch({"manual/TensorBufferTake:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
}

TEST_F(FedRecordsTest, NorIfTheGraphHasOnlyTheStage) {
  graph_.Target(
      "target",
      {graph_.Stage("manual", {graph_.Neg("a", graph_.Source("next"))})});
  ExpectError("next:0");
  Feed({"next:0"});
  EXPECT_EQ(RunTarget("manual/TensorBufferPut"), OkStatus());
}

TEST_F(FedRecordsTest, NorIfSmartStageExtendsTheStage) {
  Node* next = graph_.Source("next");
  Node* take = graph_.Stage("manual", {graph_.Neg("a", next)});
  graph_.Target("target", {graph_.Neg("c", graph_.Neg("b", take))});
  AlignAndRewrite();
  ExpectError("next:0");
  for (const char* fed : {"b:0", "c:0", "manual/TensorBufferTake:0"}) {
    Feed({"next:0", fed});
    EXPECT_EQ(Fetch({"target:0"}), OkStatus()) << fed;
  }
}

TEST_F(FedRecordsTest, NorThroughAChain) {
  Node* first = graph_.Stage("first", {graph_.Neg("a", graph_.Source("next"))});
  Node* second = graph_.Stage("second", {graph_.Neg("b", first)});
  graph_.Target("target", {second});
  AlignAndRewrite();
  ExpectError("next:0");
  ExpectError("b:0");
}

TEST_F(FedRecordsTest, NorInTheMiddleOfAChain) {
  Node* next = graph_.Source("next", 2);
  Node* first = graph_.Stage("first", {graph_.Neg("a", {next, 0})});
  Node* second = graph_.Stage("second", {graph_.AddN("b", {first, {next, 1}})});
  graph_.Target("target", {second});
  graph_.Target("of_first", {first});
  AlignAndRewrite();
  ExpectError("first/TensorBufferTake:0");
  Feed({"first/TensorBufferTake:0"});
  EXPECT_EQ(Fetch({"of_first:0", "a:0"}), OkStatus());
  Feed({"first/TensorBufferTake:0", "second/TensorBufferTake:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
}

TEST_F(FedRecordsTest, NorIfNoSourceYieldsIt) {
  Node* placeholder = graph_.Placeholder("placeholder");
  Node* constant = graph_.Const("constant", 3);
  Node* staged =
      graph_.AddN("staged", {graph_.Source("next"), placeholder, constant});
  graph_.Target("target", {graph_.Stage("manual", {staged})});
  AlignAndRewrite();
  ExpectError("constant:0");
  ExpectError("placeholder:0");
  Feed({"placeholder:0"});
  EXPECT_THAT(std::string(Fetch({"target:0"}).message()),
              HasSubstr("Give tf.staged the values"));
}

// The step computes "b" anew, from what the first stage has made of the element.
TEST_F(FedRecordsTest, NorIfTheStepComputesWhatFollows) {
  Node* next = graph_.Source("next", 2);
  Node* first = graph_.Stage("first", {graph_.Neg("a", {next, 0})});
  Node* b = graph_.AddN("b", {first, {next, 1}});
  graph_.Target("target", {graph_.Stage("second", {graph_.Neg("c", b)})});
  AlignAndRewrite();
  Feed({"next:0"});
  const Status status = Fetch({"b:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'next:0' is fed, but"));
  Feed({"next:1"});
  EXPECT_EQ(Fetch({"b:0"}), OkStatus());
}

TEST_F(FedRecordsTest, NorIfTheStageFeedsIt) {
  Node* placeholder = graph_.Placeholder("placeholder");
  placeholder->AddAttr(kFedOutputsAttr, std::vector<int>{0});
  graph_.Neg("value", graph_.Const("constant", 3))
      ->AddAttr(kFeedValueAttr, true);
  Node* staged = graph_.AddN("staged", {graph_.Source("next"), placeholder});
  graph_.Target("target", {graph_.Stage("manual", {staged})});
  AlignAndRewrite();
  ExpectError("placeholder:0");
  ExpectError("value:0");
  ExpectError("constant:0");
  Feed({"placeholder:0"});
  EXPECT_EQ(RunTarget("manual/TensorBufferPut"), OkStatus());
}

// A run of the second stage takes records of the first, for which the same
// placeholder was fed.
TEST_F(FedRecordsTest, ButEachStageOfAChainFeedsItself) {
  Node* placeholder = graph_.Placeholder("placeholder");
  placeholder->AddAttr(kFedOutputsAttr, std::vector<int>{0});
  Node* first = graph_.Stage(
      "first", {graph_.AddN("a", {graph_.Source("next"), placeholder})});
  Node* second =
      graph_.Stage("second", {graph_.AddN("b", {first, placeholder})});
  graph_.Target("target", {second});
  AlignAndRewrite();
  Feed({"placeholder:0"});
  EXPECT_EQ(RunTarget("second/TensorBufferPut"), OkStatus());
  ExpectError("placeholder:0");
}

TEST_F(GraphForRunTest, ATensorAheadOfAFedTakeKeepsTheValueOfTheRecord) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  Node* take = graph_.Stage("manual", {a});
  graph_.Target("target", {graph_.AddN("b", {take, a})});
  AlignStagesOnly();
  Feed({"manual/TensorBufferTake:0"});
  ASSERT_EQ(Fetch({"target:0", "next:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("b"), ElementsAre("manual/TensorBufferTake", "a"));
  EXPECT_EQ(Op("manual/TensorBufferTake"), "StagedNode");
  EXPECT_THAT(Inputs("a"), ElementsAre("manual/TensorBufferTake/record"));
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "TensorBufferTake");
  // Nothing else needs the record.
  Feed({"manual/TensorBufferTake:0", "a:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "(none)");
}

TEST_F(GraphForRunTest, ATensorAheadOfAFedTakeThatSmartStageExtends) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  Node* take = graph_.Stage("manual", {a});
  graph_.Target("target", {graph_.Neg("b", take), a});
  AlignAndRewrite();
  Feed({"manual/TensorBufferTake:0"});
  ASSERT_EQ(Fetch({"target:0", "a:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("b"), ElementsAre("manual/TensorBufferTake"));
  EXPECT_THAT(Inputs("a"), ElementsAre("manual/TensorBufferTake/record:1"));
}

TEST_F(GraphForRunTest, NoRecordOfAJoinHasATensorOfOneSource) {
  Node* a = graph_.Source("a");
  graph_.Put("put_a", "join", {graph_.Neg("b", a)});
  graph_.Put("put_c", "join", {graph_.Source("c")});
  graph_.Target("target", {graph_.Take("join")});
  AlignAndRewrite();
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(RunTarget("put_a"), OkStatus());
  const Status status = Fetch({"b:0", "target:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'a:0'"), HasSubstr("stage 'join'"),
                    HasSubstr("tf.prefetch_join")));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
