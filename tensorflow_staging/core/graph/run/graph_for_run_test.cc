// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/graph_for_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// Builds and rewrites a graph, and finds the graph for a run of it.
class GraphForRunTest : public ::testing::Test {
 protected:
  void Rewrite() {
    const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"");
    TF_CHECK_OK(RewriteStages(plan, rewrite_, graph_.get()));
    for (Node* node : graph_.get()->op_nodes()) {
      node->set_assigned_device_name(kCpu);
    }
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

  Strings Inputs(const std::string& name) const {
    return InputsOf(*unstaged_, name);
  }

  TestGraph graph_;
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

TEST_F(GraphForRunTest, OnlyTensorsThatTheRecordCarriesCanBeFetched) {
  Node* next = graph_.Source("next", 2);
  graph_.Target("target", {graph_.Neg("a", {next, 0}), {next, 1}});
  Rewrite();
  EXPECT_EQ(Fetch({"a:0", "next:1", "target:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  const Status status = Fetch({"target:0", "next:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'next:0'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 'prefetch'"));
  EXPECT_EQ(unstaged_, nullptr);
  EXPECT_EQ(RunTarget("next"), OkStatus());
}

TEST_F(GraphForRunTest, FeedingATensorThatNoRegionUsesChangesNothing) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  Rewrite();
  Feed({"a:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
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
  EXPECT_EQ(Op("prefetch/staged/a"), "(none)");
  EXPECT_EQ(Op("prefetch/staged/b"), "(none)");
  // The graph of the other runs has not changed.
  EXPECT_EQ(graph_.Find("a")->type_string(), "StagedNode");
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
  for (const char* name : {"next", "prefetch/TensorBufferTake"}) {
    EXPECT_EQ(Op(name), "StagedNode") << name;
    EXPECT_THAT(Inputs(name), IsEmpty()) << name;
    EXPECT_EQ(FindNode(*unstaged_, name)->assigned_device_name(), kCpu) << name;
  }
}

TEST_F(GraphForRunTest, AnUnstagedRunDoesNotWaitInTheBegin) {
  Node* next = graph_.Source("next");
  Node* iterator = const_cast<Node*>(graph_.Find("next_iterator"));
  graph_.InitializeWithRange("initialize", iterator, 0, 10);
  Node* draw = graph_.Random("draw");
  graph_.Target("target", {graph_.AddN("a", {next, draw})});
  Rewrite();
  ASSERT_THAT(graph_.Inputs("prefetch/staged/draw"),
              Contains("^prefetch/TensorBufferBegin"));
  Feed({"next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_EQ(Op("prefetch/TensorBufferBegin"), "(none)");
  EXPECT_THAT(Inputs("draw"), Not(Contains("^prefetch/TensorBufferBegin")));
}

TEST_F(GraphForRunTest, OnlyRunsThatPutARecordWaitInTheBegin) {
  Node* next = graph_.Source("next");
  Node* iterator = const_cast<Node*>(graph_.Find("next_iterator"));
  graph_.InitializeWithRange("initialize", iterator, 0, 10);
  Node* take = graph_.Stage("manual", {graph_.Neg("a", next)});
  graph_.Target("target", {take});
  Rewrite();
  ASSERT_THAT(graph_.Inputs("next"), Contains("^manual/TensorBufferBegin"));
  EXPECT_EQ(RunTarget("manual/TensorBufferPut"), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  // This run only reads a tensor that the stage computes.
  ASSERT_EQ(Fetch({"a:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("next"), ElementsAre("next_iterator"));
  EXPECT_THAT(Inputs("a"), ElementsAre("next"));
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

TEST_F(GraphForRunTest, ARunThatFeedsOnlyAPartIsRefused) {
  Node* next = graph_.Source("next", 2);
  graph_.Target("target", {graph_.AddN("a", {{next, 0}, {next, 1}})});
  Rewrite();
  Feed({"next:1"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("Tensor 'next:1' is fed"));
  EXPECT_THAT(message, HasSubstr("in stage 'prefetch'"));
  EXPECT_THAT(message, HasSubstr("the stage's records, through 'next'"));
  EXPECT_EQ(unstaged_, nullptr);

  Feed({"next:1"});
  EXPECT_TRUE(errors::IsInvalidArgument(RunTarget("target")));

  Feed({"next:0", "next:1"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_NE(unstaged_, nullptr);
}

// The clones use the constant of the graph, whatever a step feeds.
TEST_F(GraphForRunTest, ARunThatFeedsAConstantThatARegionUsesIsRefused) {
  Node* constant = graph_.Const("constant", 3);
  Node* a = graph_.AddN(
      "a", {graph_.Source("next"), graph_.Neg("negative", constant)});
  graph_.Target("target", {a});
  graph_.Target("other", {constant});
  Rewrite();
  for (const char* fed : {"constant:0", "negative:0"}) {
    Feed({fed});
    const Status status = Fetch({"target:0"});
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(strings::StrCat("Tensor '", fed, "' is fed")));
    EXPECT_EQ(unstaged_, nullptr);
  }
  // These runs need no record, or compute with the fed value.
  Feed({"constant:0"});
  EXPECT_EQ(Fetch({"other:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  Feed({"constant:0", "a:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  Feed({"constant:0", "next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a"), ElementsAre("next", "negative"));
}

TEST_F(GraphForRunTest, AnUnstagedRunUsesAFedConstantInsteadOfItsCpuCopy) {
  Node* a =
      graph_.AddN("a", {graph_.Source("next"), graph_.Const("constant", 3)});
  graph_.Target("target", {a});
  rewrite_.on_cpu = true;
  Rewrite();
  Feed({"constant:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(Fetch({"target:0"})));
  Feed({"constant:0", "next:0"});
  ASSERT_EQ(Fetch({"target:0"}), OkStatus());
  ASSERT_NE(unstaged_, nullptr);
  EXPECT_THAT(Inputs("a"), ElementsAre("next", "constant"));
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

// A runner may feed a placeholder that the stage uses, and a step may feed the
// same placeholder.
TEST_F(GraphForRunTest, ANodeThatLeadsToAPutMayBeFed) {
  Node* fed = graph_.Placeholder("fed");
  Node* take = graph_.Stage(
      "manual", {graph_.AddN("staged", {graph_.Source("next"), fed})});
  graph_.Target("target", {graph_.Neg("a", take), fed});
  Rewrite();
  Feed({"fed:0"});
  EXPECT_EQ(RunTarget("manual/TensorBufferPut"), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
  Feed({"fed:0"});
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
  EXPECT_EQ(unstaged_, nullptr);
}

// A feed replaces a value, but a node that waits for the source still makes it
// run.
TEST_F(GraphForRunTest, ARunThatWaitsForAFedSourceIsRefused) {
  Node* next = graph_.Source("next");
  Node* target = graph_.Target("target", {graph_.Neg("a", next)});
  graph_.AddControl(next, target);
  Rewrite();
  Feed({"next:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(Fetch({"target:0"})));
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
  EXPECT_TRUE(errors::IsInvalidArgument(Fetch({"a:0"})));
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
  for (const char* name :
       {"manual/TensorBufferTake", "manual/TensorBufferTake/record"}) {
    EXPECT_EQ(Op(name), "StagedNode") << name;
    EXPECT_THAT(Inputs(name), IsEmpty()) << name;
  }

  Feed({"manual/TensorBufferTake:1"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("through 'manual/TensorBufferTake'"));
}

// As for a source: a node that waits for the Take makes it take a record.
TEST_F(GraphForRunTest, ARunThatWaitsForAFedTakeIsRefused) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  Node* waits = graph_.Neg("waits", graph_.Const("value", 1));
  graph_.AddControl(take, waits);
  graph_.Target("target", {graph_.AddN("a", {take, waits})});
  Rewrite();
  Feed({"manual/TensorBufferTake:0"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("through 'manual/TensorBufferTake'"));
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
TEST_F(GraphForRunTest, AMalformedMarkOfAFedNodeIsRefused) {
  Node* fed = graph_.Neg("fed", graph_.Const("constant", 3));
  graph_.Target("target", {fed});
  fed->AddAttr(kUsedAheadAttr, std::vector<int>{0});
  Feed({"fed:0"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kMarkedStageAttr));
  EXPECT_EQ(unstaged_, nullptr);
  // A run that does not feed the node succeeds.
  EXPECT_EQ(Fetch({"target:0"}), OkStatus());
}

TEST_F(GraphForRunTest, MarksThatLeadToAnotherTypeAreRefused) {
  Node* next = graph_.Source("next");
  graph_.Target("target", {graph_.Neg("b", graph_.Neg("a", next))});
  Rewrite();
  // The clone loses its mark, and another node pretends to be the clone.
  for (Node* node : graph_.get()->op_nodes()) {
    if (node->name() != "prefetch/staged/a") continue;
    node->ClearAttr(kOriginalAttr);
    node->AddAttr(kOriginalAttr, "somewhere");
  }
  Node* two = graph_.Source("two", 2);
  MarkClone({"prefetch", "a", {}}, two);
  Feed({"next:0"});
  const Status status = Fetch({"target:0"});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has other types"));
  EXPECT_EQ(unstaged_, nullptr);
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
  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "StagedNode");
  EXPECT_EQ(Op("prefetch_1/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("prefetch_1/staged/next2"), "IteratorGetNext");
  EXPECT_THAT(Inputs("a2"), ElementsAre("^prefetch_1/TensorBufferTake"));
  EXPECT_THAT(Inputs("b2"), ElementsAre("prefetch_1/TensorBufferTake"));

  Feed({"next1:0"});
  const Status status = Fetch({"target1:0", "a2:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 'prefetch_1'"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
