// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StageRewriteTest : public ::testing::Test {
 protected:
  Status Rewrite() {
    const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"",
                         NodeFilter(), content_);
    return RewriteStages(plan, options_, graph_.get());
  }

  std::string Op(const std::string& name) const {
    const Node* node = graph_.Find(name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  template <typename T>
  T Attr(const std::string& name, const std::string& attr) const {
    T value;
    TF_CHECK_OK(GetNodeAttr(graph_.Find(name)->attrs(), attr, &value));
    return value;
  }

  std::string Device(const std::string& name) const {
    return graph_.Find(name)->requested_device();
  }

  TestGraph graph_;
  // Most tests look at the tensors that the step needs.
  RecordContent content_ = RecordContent::kBoundaryOnly;
  RewriteOptions options_;
};

TEST_F(StageRewriteTest, ClonesRunAheadAndTheStepKeepsTheNames) {
  Node* next = graph_.Source("next");
  graph_.Target("target", {graph_.Neg("b", graph_.Neg("a", next))});
  ASSERT_EQ(Rewrite(), OkStatus());

  EXPECT_EQ(Op("prefetch/staged/next"), "IteratorGetNext");
  EXPECT_THAT(graph_.Inputs("prefetch/staged/next"),
              ElementsAre("next_iterator"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/a"),
              ElementsAre("prefetch/staged/next"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/b"),
              ElementsAre("prefetch/staged/a"));
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/staged/b"));

  EXPECT_EQ(Op("prefetch/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("b"), "Identity");
  EXPECT_THAT(graph_.Inputs("b"), ElementsAre("prefetch/TensorBufferTake"));
  EXPECT_THAT(graph_.Inputs("target"), ElementsAre("b"));
}

TEST_F(StageRewriteTest, TheElementsOfTheSourceAreCarriedBeside) {
  Node* next = graph_.Source("next", 2);
  graph_.Target("target", {graph_.Neg("a", {next, 1})});
  content_ = RecordContent::kElements;
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/staged/a", "prefetch/staged/next",
                          "prefetch/staged/next:1"));
  EXPECT_THAT(graph_.Inputs("a"), ElementsAre("prefetch/TensorBufferTake"));
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_THAT(graph_.Inputs("next"),
              ElementsAre("prefetch/TensorBufferTake:1",
                          "prefetch/TensorBufferTake:2"));
}

// Running such a node, or waiting for it, still takes the next record.
TEST_F(StageRewriteTest, ANodeWithoutCarriedOutputsWaitsForTheTake) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  Node* check = graph_.NoOp("check");
  graph_.AddControl(a, check);
  Node* target = graph_.Target("target", {graph_.Neg("b", a)});
  graph_.AddControl(check, target);
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("a"), "(none)");
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_THAT(graph_.Inputs("next"), ElementsAre("^prefetch/TensorBufferTake"));
  EXPECT_EQ(Attr<std::string>("next", "stage"), "prefetch");
  EXPECT_EQ(Op("check"), "NoOp");
  EXPECT_THAT(graph_.Inputs("check"),
              ElementsAre("^prefetch/TensorBufferTake"));
  EXPECT_THAT(graph_.Inputs("target"), ElementsAre("b", "^check"));
}

TEST_F(StageRewriteTest, CarriedOutputsKeepTheirIndices) {
  Node* next = graph_.Source("next", 3);
  Node* a = graph_.Neg("a", {next, 1});
  graph_.Target("target", {{next, 2}, {a, 0}, {next, 0}});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/staged/a", "prefetch/staged/next",
                          "prefetch/staged/next:2"));
  EXPECT_EQ(Op("next"), "StagedNode");
  EXPECT_THAT(graph_.Inputs("next"),
              ElementsAre("prefetch/TensorBufferTake:1",
                          "prefetch/TensorBufferTake:2"));
  EXPECT_THAT(Attr<std::vector<int>>("next", "indices"), ElementsAre(0, 2));
  EXPECT_THAT(graph_.Inputs("target"), ElementsAre("next:2", "a", "next"));
}

TEST_F(StageRewriteTest, ConstantsAndHandlesAreShared) {
  Node* constant = graph_.Const("constant", 3);
  Node* table = graph_.Table("table", "HashTableV2");
  Node* found = graph_.Lookup("found", table, graph_.Source("next"));
  Node* a = graph_.AddN("a", {found, constant});
  graph_.Target("target", {a, constant});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/staged/found"),
              ElementsAre("table", "prefetch/staged/next", "found/default"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/a"),
              ElementsAre("prefetch/staged/found", "constant"));
  EXPECT_THAT(graph_.Inputs("target"), ElementsAre("a", "constant"));
}

TEST_F(StageRewriteTest, ControlEdgesKeepTheOrderOfEachSide) {
  Node* next = graph_.Source("next");
  Node* shared = graph_.NoOp("shared");
  Node* first = graph_.Neg("first", next);
  Node* second = graph_.Neg("second", next);
  graph_.AddControl(first, second);
  graph_.AddControl(shared, second);
  Node* train = graph_.Target("train", {second});
  Node* after = graph_.Target("after", {second});
  graph_.AddControl(train, after);
  graph_.AddControl(first, after);
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(
      graph_.Inputs("prefetch/staged/second"),
      ElementsAre("prefetch/staged/next", "^prefetch/staged/first", "^shared"));
  EXPECT_THAT(graph_.Inputs("after"),
              ElementsAre("second", "^first", "^train"));
  // The record is complete only after all nodes for which the step waits.
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/staged/second", "^prefetch/staged/first"));
}

TEST_F(StageRewriteTest, ALoopIsClonedWithTheEdgesFromItsEnd) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 5), &graph_);
  Node* sum = graph_.AddN("sum", {loop.body()[0], loop.body()[0]});
  graph_.Target("target", {loop.Close({sum})[0]});
  ASSERT_EQ(Rewrite(), OkStatus());

  EXPECT_THAT(
      graph_.Inputs("prefetch/staged/loop/merge0"),
      ElementsAre("prefetch/staged/loop/enter0", "prefetch/staged/loop/next0"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/loop/next0"),
              ElementsAre("prefetch/staged/sum"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/loop/invariant0"),
              ElementsAre("limit"));
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut"),
              ElementsAre("prefetch/staged/loop/exit0"));
  EXPECT_EQ(Op("loop/exit0"), "Identity");
  EXPECT_EQ(Op("loop/merge0"), "(none)");
}

TEST_F(StageRewriteTest, AStagedRunOfAConditionalCanCheckItsPut) {
  Node* next = graph_.Source("next");
  TestConditional cond(
      "cond", graph_.Less("less", next, graph_.Const("five", 5)), &graph_);
  graph_.Target("target",
                {cond.Result(cond.In(false, next), cond.In(true, next))});
  graph_.Target("other", {graph_.Neg("neg", graph_.Source("plain"))});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("prefetch/TensorBufferPut/done"),
              ElementsAre("^prefetch/TensorBufferPut"));
  EXPECT_EQ(Op("prefetch_1/TensorBufferPut"), "TensorBufferPut");
  EXPECT_EQ(Op("prefetch_1/TensorBufferPut/done"), "(none)");
}

// In one run, the Enters of one name must be of one loop.
TEST_F(StageRewriteTest, EachCloneOfALoopHasAFrameOfItsOwn) {
  Node* take = graph_.Stage("stage", {graph_.Const("record", 1)});
  graph_.Put("stage/other", "stage", {graph_.Const("other", 1)});
  TestLoop loop("loop", {take}, graph_.Const("limit", 5), &graph_);
  graph_.Target("target", {loop.Close({loop.body()[0]})[0]});
  ASSERT_EQ(Rewrite(), OkStatus());
  for (const char* scope : {"stage/staged", "stage/staged_1"}) {
    for (const char* enter : {"/loop/enter0", "/loop/invariant0"}) {
      EXPECT_EQ(Attr<std::string>(strings::StrCat(scope, enter), "frame_name"),
                strings::StrCat(scope, "/loop"));
    }
  }
}

TEST_F(StageRewriteTest, ASharedLoopIsNotCopiedToTheCpu) {
  options_.on_cpu = true;
  TestLoop loop("loop", {graph_.Const("zero", 0)}, graph_.Const("limit", 5),
                &graph_);
  Node* exit = loop.Close({graph_.Neg("neg", loop.body()[0])})[0];
  Node* one = graph_.Const("one", 1);
  graph_.Target("target",
                {graph_.AddN("sum", {graph_.Source("next"), exit, one})});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(
      graph_.Inputs("prefetch/staged/sum"),
      ElementsAre("prefetch/staged/next", "loop/exit0", "prefetch/staged/one"));
  EXPECT_EQ(Op("prefetch/staged/loop/enter0"), "(none)");
}

TEST_F(StageRewriteTest, AStageThatAsksForNoAcceleratorIsOnTheCpuByDefault) {
  options_.on_cpu = std::nullopt;
  Node* on_gpu = graph_.Neg("on_gpu", graph_.Source("next"));
  on_gpu->set_requested_device("/device:GPU:0");
  Node* anywhere = graph_.Neg("anywhere", graph_.Source("other"));
  graph_.Target("target", {on_gpu});
  graph_.Target("other_target", {anywhere});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Device("prefetch/staged/on_gpu"), "/device:GPU:0");
  EXPECT_EQ(Device("prefetch_1/staged/anywhere"), "/device:CPU:0");
  EXPECT_FALSE(HasNodeAttr(graph_.Find("prefetch/TensorBufferPut")->def(),
                           kDeliversAttr));
  EXPECT_TRUE(HasNodeAttr(graph_.Find("prefetch_1/TensorBufferPut")->def(),
                          kDeliversAttr));
}

TEST_F(StageRewriteTest, AttributesAndDevicesSurviveOnBothSides) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  a->set_requested_device("/device:CPU:0");
  a->AddAttr("_user_attr", "kept");
  graph_.Target("target", {a});
  ASSERT_EQ(Rewrite(), OkStatus());
  for (const char* name : {"a", "prefetch/staged/a"}) {
    EXPECT_EQ(Device(name), "/device:CPU:0") << name;
    EXPECT_EQ(Attr<std::string>(name, "_user_attr"), "kept") << name;
  }
}

TEST_F(StageRewriteTest, EachSideIsColocatedWithItself) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  a->AddAttr("_class", Strings{"loc:@next", "loc:@v"});
  Node* target = graph_.Target("target", {a});
  target->AddAttr("_class", Strings{"loc:@a"});
  graph_.RefVariable("v");
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(Attr<Strings>("prefetch/staged/a", "_class"),
              ElementsAre("loc:@prefetch/staged/next", "loc:@v"));
  EXPECT_THAT(Attr<Strings>("a", "_class"), ElementsAre("loc:@next", "loc:@v"));
  EXPECT_THAT(Attr<Strings>("target", "_class"), ElementsAre("loc:@a"));
}

// A node that the step does not use has no stand-in, unless a node of the step
// is colocated with it.
TEST_F(StageRewriteTest, ColocationsWithNodesWithoutAStandInAreDropped) {
  Node* next = graph_.Source("next");
  Node* a = graph_.Neg("a", next);
  Node* b = graph_.Neg("b", a);
  Node* c = graph_.Neg("c", b);
  c->AddAttr("_class", Strings{"loc:@a", "loc:@b", "loc:@v"});
  Node* target = graph_.Target("target", {c});
  target->AddAttr("_class", Strings{"loc:@b"});
  graph_.RefVariable("v");
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("a"), "(none)");
  EXPECT_EQ(Op("b"), "StagedNode");
  EXPECT_THAT(Attr<Strings>("c", "_class"), ElementsAre("loc:@b", "loc:@v"));
  EXPECT_THAT(Attr<Strings>("target", "_class"), ElementsAre("loc:@b"));
}

// For a stand-in with the attribute, the runtime would look for a function with
// the name of its op.
TEST_F(StageRewriteTest, XlaCompilesTheCloneAlone) {
  Node* a = graph_.Neg("a", graph_.Source("next"));
  a->AddAttr("_XlaMustCompile", true);
  a->AddAttr("_other", true);
  graph_.Target("target", {a});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_TRUE(Attr<bool>("prefetch/staged/a", "_XlaMustCompile"));
  EXPECT_EQ(graph_.Find("a")->attrs().Find("_XlaMustCompile"), nullptr);
  EXPECT_TRUE(Attr<bool>("a", "_other"));
}

TEST_F(StageRewriteTest, ErrorsInACloneNameTheUsersNode) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  ASSERT_EQ(Rewrite(), OkStatus());
  const NodeDef& def = graph_.Find("prefetch/staged/a")->def();
  EXPECT_THAT(def.experimental_debug_info().original_node_names(),
              ElementsAre("a"));
}

TEST_F(StageRewriteTest, TheBufferIsOnTheCpuOfTheTaskOfItsSource) {
  Node* next = graph_.Source("next");
  next->set_requested_device("/job:worker/replica:0/task:3/device:GPU:1");
  graph_.Target("target", {next});
  ASSERT_EQ(Rewrite(), OkStatus());
  for (const char* op :
       {"TensorBufferPut", "TensorBufferTake", "TensorBufferCancel",
        "TensorBufferResume", "TensorBufferClose", "TensorBufferSize",
        "TensorBufferStats", "TensorBufferDiscard"}) {
    const std::string name = strings::StrCat("prefetch/", op);
    EXPECT_EQ(Device(name), "/job:worker/replica:0/task:3/device:CPU:0") << op;
    if (name != "prefetch/TensorBufferPut") {
      EXPECT_THAT(Attr<Strings>(name, "_class"),
                  ElementsAre("loc:@prefetch/TensorBufferPut"));
    }
  }
}

TEST_F(StageRewriteTest, OptionsBecomeAttributes) {
  options_.buffer.capacity = 7;
  options_.buffer.timeout_millis = 11;
  options_.buffer.stream_id = 2;
  graph_.Target("target", {graph_.Source("next")});
  ASSERT_EQ(Rewrite(), OkStatus());
  const std::string put = "prefetch/TensorBufferPut";
  EXPECT_EQ(Attr<int64_t>(put, "capacity"), 7);
  EXPECT_EQ(Attr<int64_t>(put, "timeout_millis"), 11);
  EXPECT_EQ(Attr<std::string>(put, "shared_name"), "prefetch");
  EXPECT_EQ(Attr<int64_t>("prefetch/TensorBufferTake", "capacity"), 7);
  EXPECT_EQ(Attr<int64_t>(put, "_stream_id"), 2);
}

TEST_F(StageRewriteTest, ShapesOfTheRecordAreKept) {
  graph_.Target("target", {graph_.Source("next", 2)});
  ASSERT_EQ(Rewrite(), OkStatus());
  for (const char* name : {"prefetch/TensorBufferTake", "next"}) {
    const auto shapes = Attr<std::vector<PartialTensorShape>>(name, "shapes");
    ASSERT_EQ(shapes.size(), 2) << name;
    EXPECT_EQ(shapes[0].DebugString(), "[]") << name;
    EXPECT_EQ(shapes[1].DebugString(), "[]") << name;
  }
}

TEST_F(StageRewriteTest, ShapesAreUnknownIfNobodyReadsThem) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  options_.infer_shapes = false;
  ASSERT_EQ(Rewrite(), OkStatus());
  const auto shapes = Attr<std::vector<PartialTensorShape>>(
      "prefetch/TensorBufferTake", "shapes");
  ASSERT_EQ(shapes.size(), 1);
  EXPECT_TRUE(shapes[0].unknown_rank());
}

// Whatever initialises, saves or restores an iterator, its stage learns of it
// from the iterator.
TEST_F(StageRewriteTest, WhatChangesOrSavesAnIteratorStaysAsItIs) {
  Node* next = graph_.Source("next");
  Node* iterator = const_cast<Node*>(graph_.Find("next_iterator"));
  graph_.InitializeWithRange("initialize", iterator, 0, 10);
  NodeBuilder save("save", "SerializeIterator");
  save.Input(iterator);
  NodeBuilder restore("restore", "DeserializeIterator");
  restore.Input(iterator).Input(graph_.Finalize(&save));
  graph_.Finalize(&restore);
  graph_.Target("target", {graph_.Neg("a", next)});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("initialize"),
              ElementsAre("initialize/range", "next_iterator"));
  EXPECT_EQ(Op("save"), "SerializeIterator");
  EXPECT_THAT(graph_.Inputs("save"), ElementsAre("next_iterator"));
  EXPECT_THAT(graph_.Inputs("restore"), ElementsAre("next_iterator", "save"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/next"),
              ElementsAre("next_iterator"));
}

TEST_F(StageRewriteTest, AManualStageIsExtended) {
  Node* take = graph_.Stage("manual", {graph_.Neg("a", graph_.Source("next")),
                                       graph_.Const("value", 1)});
  Node* b = graph_.AddN("b", {{take, 0}, {take, 1}});
  graph_.Target("target", {b});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("a"), ElementsAre("next"));
  EXPECT_THAT(graph_.Inputs("manual/staged/b"), ElementsAre("a", "value"));
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferPut"),
              ElementsAre("manual/staged/b"));
  EXPECT_EQ(Op("manual/TensorBufferTake/record"), "TensorBufferTake");
  EXPECT_EQ(Op("manual/TensorBufferTake"), "StagedNode");
  EXPECT_EQ(Op("b"), "Identity");
  EXPECT_THAT(graph_.Inputs("b"),
              ElementsAre("manual/TensorBufferTake/record"));
}

// A graph may come from a client that did not call tf.staged.
TEST_F(StageRewriteTest, APutThatDoesNotFitItsTakeIsRefused) {
  graph_.Put("manual/TensorBufferPut", "manual", {graph_.Source("next")});
  graph_.AddControlOps("manual");
  Node* take = graph_.Take("manual", /*components=*/2);
  graph_.Target("target", {graph_.AddN("a", {{take, 0}, {take, 1}})});
  const Status status = Rewrite();
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'manual/TensorBufferPut' of stage 'manual' puts "
                        "records of int64, but"));
}

TEST_F(StageRewriteTest, EachPutOfAManualStageHasItsOwnClones) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  graph_.Put("other_put", "manual", {graph_.Source("other_next")});
  graph_.Target("target", {graph_.Neg("a", take), take});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("manual/staged/a"), ElementsAre("next"));
  EXPECT_THAT(graph_.Inputs("manual/staged_1/a"), ElementsAre("other_next"));
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferPut"),
              ElementsAre("manual/staged/a", "next"));
  EXPECT_THAT(graph_.Inputs("other_put"),
              ElementsAre("manual/staged_1/a", "other_next"));
}

TEST_F(StageRewriteTest, AManualStageKeepsItsOptions) {
  options_.buffer.capacity = 7;
  options_.buffer.timeout_millis = 11;
  options_.buffer.stream_id = 2;
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  Node* put = const_cast<Node*>(graph_.Find("manual/TensorBufferPut"));
  put->ClearAttr("timeout_millis");
  put->AddAttr("timeout_millis", 5);
  put->set_requested_device("/job:worker/task:1");
  Node* before = graph_.NoOp("before");
  graph_.AddControl(before, put);
  graph_.AddControl(before, take);
  graph_.Target("target", {graph_.Neg("a", take)});
  ASSERT_EQ(Rewrite(), OkStatus());
  const std::string name = "manual/TensorBufferPut";
  EXPECT_EQ(Attr<int64_t>(name, "timeout_millis"), 5);
  EXPECT_EQ(Attr<int64_t>(name, "capacity"), 1);
  EXPECT_EQ(Device(name), "/job:worker/task:1");
  EXPECT_THAT(graph_.Inputs(name), ElementsAre("manual/staged/a", "^before"));
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferTake/record"),
              ElementsAre("^before"));
  EXPECT_FALSE(HasNodeAttr(graph_.Find(name)->def(), "_stream_id"));
}

// It ran once for each record before the rewrite, and still does.
TEST_F(StageRewriteTest, ADrawBeforeTheTakeOfAManualStageRunsAhead) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  graph_.AddControl(graph_.Random("random"), take);
  graph_.Target("target", {graph_.Neg("a", take)});
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferPut"),
              ElementsAre("manual/staged/a", "^manual/staged/random"));
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferTake/record"), ElementsAre());
}

// Tests the attribute `container` of the ops around a stage's buffer.
class StageContainerTest : public StageRewriteTest {
 protected:
  // The container of a stage with records of `components` tensors in `session`.
  static std::string ContainerOf(const std::string& session, int components) {
    TestGraph graph;
    graph.Target("target", {graph.Source("next", components)});
    const StagePlan plan(*graph.get(), true, "");
    RewriteOptions options;
    options.session = session;
    TF_CHECK_OK(RewriteStages(plan, options, graph.get()));
    std::string container;
    for (const Node* node : graph.get()->op_nodes()) {
      if (!absl::StartsWith(node->type_string(), "TensorBuffer")) continue;
      const std::string& found = GetNodeAttrString(node->attrs(), "container");
      if (container.empty()) container = found;
      EXPECT_EQ(container, found) << node->name();
    }
    return container;
  }
};

TEST_F(StageContainerTest, DependsOnTheSessionAndTheRecord) {
  EXPECT_EQ(ContainerOf("one", 1), ContainerOf("one", 1));
  EXPECT_NE(ContainerOf("one", 1), ContainerOf("two", 1));
  EXPECT_NE(ContainerOf("one", 1), ContainerOf("one", 2));
}

TEST_F(StageContainerTest, AllOpsOfAManualStageMoveTogether) {
  for (const bool extended : {false, true}) {
    for (const char* session : {"", "one"}) {
      TestGraph graph;
      Node* take = graph.Stage("manual", {graph.Source("next")});
      graph.Target("target", {extended ? graph.Neg("a", take) : take});
      const StagePlan plan(*graph.get(), true, "");
      RewriteOptions options;
      options.session = session;
      ASSERT_EQ(RewriteStages(plan, options, graph.get()), OkStatus());
      std::set<std::string> containers;
      for (const Node* node : graph.get()->op_nodes()) {
        if (absl::StartsWith(node->type_string(), "TensorBuffer")) {
          containers.insert(GetNodeAttrString(node->attrs(), "container"));
        }
      }
      ASSERT_EQ(containers.size(), 1);
      const bool moved = extended || !std::string(session).empty();
      EXPECT_EQ(!containers.begin()->empty(), moved) << extended << session;
    }
  }
}

TEST_F(StageRewriteTest, WithoutARegionTheGraphIsUnchanged) {
  graph_.Target("target", {graph_.Neg("a", graph_.Const("value", 1))});
  graph_.Neg("leaf", graph_.Source("next"));
  GraphDef before;
  graph_.get()->ToGraphDef(&before);
  ASSERT_EQ(Rewrite(), OkStatus());
  GraphDef after;
  graph_.get()->ToGraphDef(&after);
  EXPECT_EQ(before.DebugString(), after.DebugString());
}

// A plan never causes this error by itself, so the test changes the graph after
// it has made the plan.
TEST_F(StageRewriteTest, AStageThatWaitsForItselfIsAnError) {
  Node* constant = graph_.Const("constant", 1);
  Node* a = graph_.AddN("a", {graph_.Source("next"), constant});
  Node* target = graph_.Target("target", {a});
  const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"");
  graph_.AddControl(target, constant);
  const Status status = RewriteStages(plan, options_, graph_.get());
  EXPECT_EQ(status.code(), error::INTERNAL);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a stage that waits for itself, through "
                        "'prefetch/TensorBufferTake'"));
}

TEST_F(StageRewriteTest, ANodeAddedLaterMayNotHaveTheNameOfANewNode) {
  graph_.Target("target", {graph_.Neg("a", graph_.Source("next"))});
  const int old_ids = graph_.get()->num_node_ids();
  graph_.Stage("prefetch", {graph_.Source("later")});
  const StagePlan plan(
      *graph_.get(), /*smart_stage=*/true, /*name=*/"",
      NodeFilter([old_ids](const Node& node) { return node.id() < old_ids; }));
  const Status status = RewriteStages(plan, options_, graph_.get());
  EXPECT_TRUE(errors::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Node 'prefetch/"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
