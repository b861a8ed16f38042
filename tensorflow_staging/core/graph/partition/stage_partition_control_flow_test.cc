// SPDX-License-Identifier: Apache-2.0
//
// Tests the partition of graphs with control flow of version 1.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using Out = TestGraph::Out;
// A reason, and the name of the node that it is about.
using Reason = std::pair<StepReason, std::string>;

const Reason kStaged = {StepReason::kNone, ""};

class ControlFlowPartitionTest : public ::testing::Test {
 protected:
  void Divide() {
    partition_ = std::make_unique<StagePartition>(*graph_.get(), NodeFilter(),
                                                  RecordContent::kBoundaryOnly);
  }

  // The tensors of the only region that the step needs; empty if there is no
  // region.
  Strings Boundary() const {
    Strings names;
    if (partition_->regions().empty()) return names;
    EXPECT_EQ(partition_->regions().size(), 1);
    for (const StagedTensor& tensor : partition_->regions().front().boundary) {
      names.push_back(tensor.name());
    }
    return names;
  }

  Reason WhyNot(const Node* node) const {
    const LocatedReason located = partition_->WhyNot(*node);
    return {located.reason,
            located.node == nullptr ? "" : located.node->name()};
  }

  // The reason of all nodes whose names begin with `prefix`, except pivots, or
  // a failure if they have different ones.
  Reason WhyNotAll(const std::string& prefix) const {
    std::vector<Reason> reasons;
    for (const Node* node : const_cast<TestGraph&>(graph_).get()->op_nodes()) {
      if (absl::StartsWith(node->name(), prefix) &&
          !absl::StrContains(node->name(), "/pivot") &&
          !absl::StrContains(node->name(), "/switch_")) {
        reasons.push_back(WhyNot(node));
        EXPECT_EQ(reasons.back(), reasons.front()) << node->name();
      }
    }
    return reasons.front();
  }

  Node* Predicate(Out value) {
    return graph_.Less("predicate", value, graph_.Const("five", 5));
  }

  TestGraph graph_;
  std::unique_ptr<StagePartition> partition_;
};

TEST_F(ControlFlowPartitionTest, AConditionalRunsAheadAsAWhole) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* merge = cond.Result(
      cond.In(false, next),
      graph_.AddN("cond/add",
                  {cond.In(true, next), cond.Const(true, "cond/one", 1)}));
  graph_.Target("target", {graph_.Neg("later", merge)});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"later:0"});
  EXPECT_EQ(WhyNotAll("cond/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, TheResultOfAConditionalIsCarried) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* merge = cond.Result(cond.In(false, next),
                            graph_.Neg("cond/neg", cond.In(true, next)));
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"cond/merge0:0"});
  EXPECT_EQ(WhyNotAll("cond/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, AConditionalOfADrawRunsAhead) {
  Node* next = graph_.Source("next");
  Node* draw = graph_.Random("draw");
  TestConditional cond("cond", Predicate(draw), &graph_);
  Node* merge = cond.Result(cond.In(false, next),
                            graph_.Neg("cond/neg", cond.In(true, next)));
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(WhyNot(draw), kStaged);
  EXPECT_EQ(WhyNotAll("cond/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, ADrawInABranchRunsAheadWithTheConditional) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* draw = graph_.Random("cond/draw");
  for (const char* input : {"/shape", "/min", "/max"}) {
    graph_.AddControl(
        cond.pivot(true),
        const_cast<Node*>(graph_.Find(std::string("cond/draw") + input)));
  }
  Node* merge = cond.Result(cond.In(false, next), draw);
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(WhyNotAll("cond/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, AConditionalWithAVariableInABranchStays) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* early = graph_.Neg("cond/early", cond.In(true, next));
  Node* read = graph_.ReadVariable("v");
  Node* merge = cond.Result(cond.In(false, read), early);
  Node* later = graph_.Neg("later", merge);
  graph_.Target("target", {later});
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"cond/pred:0", "next:0"}));
  EXPECT_EQ(WhyNot(early), Reason(StepReason::kVariable, "v_handle"));
  EXPECT_EQ(WhyNot(later), Reason(StepReason::kVariable, "v_handle"));
}

TEST_F(ControlFlowPartitionTest, AConditionalThatLeaksATensorToTheStepStays) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* inside = graph_.Neg("cond/neg", cond.In(true, next));
  Node* merge = cond.Result(cond.In(false, next), inside);
  graph_.Target("target", {merge});
  graph_.Target("leak", {inside});
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"cond/pred:0", "next:0"}));
  EXPECT_EQ(WhyNot(inside), Reason(StepReason::kTarget, "leak"));
}

TEST_F(ControlFlowPartitionTest, AConditionalThatLeaksAControlEdgeStays) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* inside = graph_.Neg("cond/neg", cond.In(true, next));
  graph_.Target("target", {cond.Result(cond.In(false, next), inside)});
  Node* leak = graph_.Target("leak", {next});
  graph_.AddControl(inside, leak);
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"cond/pred:0", "next:0"}));
}

TEST_F(ControlFlowPartitionTest, NodesAfterASwitchWithoutMergeStayTogether) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* inside = graph_.Neg("inside", cond.In(true, next));
  Node* more = graph_.Neg("more", inside);
  graph_.Target("target", {more});
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"cond/pred:0", "next:0"}));
  EXPECT_EQ(WhyNot(inside), Reason(StepReason::kTarget, "target"));
}

// tf.debugging.assert_* and tf.cond with ops: Merges of the pivots, for which
// later nodes wait.
TEST_F(ControlFlowPartitionTest, ACheckRunsAheadWithTheNodesThatWaitForIt) {
  Node* next = graph_.Source("next");
  TestConditional cond("assert", Predicate(next), &graph_);
  NodeBuilder assertion("assert/Assert", "Assert");
  assertion.Input(cond.pivot(false))
      .Input(TestGraph::Outs{cond.In(false, next)});
  Node* failed = graph_.Identity("assert/failed", cond.pivot(false));
  graph_.AddControl(graph_.Finalize(&assertion), failed);
  Node* noop = graph_.NoOp("assert/NoOp");
  graph_.AddControl(cond.pivot(true), noop);
  Node* passed = graph_.Identity("assert/passed", cond.pivot(true));
  graph_.AddControl(noop, passed);
  Node* merge = cond.Result(failed, passed);
  Node* checked = graph_.Neg("checked", next);
  graph_.AddControl(merge, checked);
  graph_.Target("target", {checked});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"checked:0"});
  EXPECT_EQ(WhyNotAll("assert/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, ACheckOfWhichTheStepWaitsIsInTheBoundary) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* merge = cond.Result(cond.pivot(false), cond.pivot(true));
  Node* target = graph_.Target("target", {next});
  graph_.AddControl(merge, target);
  Divide();
  ASSERT_EQ(partition_->regions().size(), 1);
  EXPECT_EQ(Names(partition_->regions().front().control_boundary),
            Strings{"cond/merge0"});
}

TEST_F(ControlFlowPartitionTest, NestedConditionalsRunAhead) {
  Node* next = graph_.Source("next");
  TestConditional outer("outer", Predicate(next), &graph_);
  const Out value = outer.In(true, next);
  Node* less = graph_.Less("less", value, outer.Const(true, "three", 3));
  TestConditional inner("inner", less, &graph_);
  Node* merge = inner.Result(inner.Const(false, "zero", 0),
                             graph_.Neg("neg", inner.In(true, value)));
  Node* result = outer.Result(outer.In(false, next), merge);
  graph_.Target("target", {result});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"outer/merge0:0"});
  EXPECT_EQ(WhyNotAll("inner/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, TheResultOfANestedConditionalIsNotCarried) {
  Node* next = graph_.Source("next");
  TestConditional outer("outer", Predicate(next), &graph_);
  const Out value = outer.In(true, next);
  Node* less = graph_.Less("less", value, outer.Const(true, "three", 3));
  TestConditional inner("inner", less, &graph_);
  Node* merge = inner.Result(inner.In(false, value), inner.In(true, value));
  graph_.Target("target", {outer.Result(outer.In(false, next), merge)});
  graph_.Target("leak", {merge});
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"next:0", "outer/pred:0", "predicate:0"}));
  EXPECT_EQ(WhyNotAll("inner/"), Reason(StepReason::kTarget, "leak"));
}

TEST_F(ControlFlowPartitionTest, AMergeThatMayBeDeadStays) {
  Node* next = graph_.Source("next");
  TestConditional one("one", Predicate(next), &graph_);
  TestConditional two("two", graph_.Less("other", next, graph_.Const("six", 6)),
                      &graph_);
  Node* merge = graph_.Merge("merge", {one.In(true, next), two.In(true, next)});
  Node* later = graph_.Neg("later", merge);
  graph_.Target("target", {later});
  Divide();
  EXPECT_EQ(WhyNot(later), Reason(StepReason::kControlFlow, "merge"));
  EXPECT_EQ(WhyNot(graph_.Find("one/switch0")),
            Reason(StepReason::kControlFlow, "merge"));
  EXPECT_EQ(ReasonText(*later, partition_->WhyNot(*later)),
            "depends on control flow (Switch, Merge, Enter, ...) that cannot "
            "run ahead as a whole, at 'merge' (Merge)");
}

// Such Merges are in no graph of tf.cond, but a program may add them.
TEST_F(ControlFlowPartitionTest, AMergeOfManyBranchesRunsAhead) {
  Node* next = graph_.Source("next");
  TestConditional outer("outer", Predicate(next), &graph_);
  const Out value = outer.In(true, next);
  Node* less = graph_.Less("less", value, outer.Const(true, "three", 3));
  TestConditional inner("inner", less, &graph_);
  Node* merge =
      graph_.Merge("merge", {inner.In(true, value), outer.In(false, next),
                             graph_.Neg("inner/neg", inner.In(false, value))});
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"merge:0"});
  EXPECT_EQ(WhyNotAll("inner/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, AMergeOfAllBranchesButOneStays) {
  Node* next = graph_.Source("next");
  TestConditional outer("outer", Predicate(next), &graph_);
  const Out value = outer.In(true, next);
  Node* less = graph_.Less("less", value, outer.Const(true, "three", 3));
  TestConditional inner("inner", less, &graph_);
  TestConditional more("more", less, &graph_);
  Node* merge = graph_.Merge(
      "merge",
      {inner.In(true, value), outer.In(false, next), more.In(true, value)});
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(WhyNot(merge), Reason(StepReason::kControlFlow, "merge"));
}

TEST_F(ControlFlowPartitionTest, ALoopRunsAheadAsAWhole) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {graph_.Const("zero", 0), graph_.Const("start", 0)},
                graph_.Const("limit", 3), &graph_);
  Node* one = graph_.Const("loop/one", 1);
  graph_.AddControl(loop.body()[0], one);
  Node* count = graph_.AddN("loop/count", {loop.body()[0], one});
  Node* sum = graph_.AddN("loop/sum", {loop.body()[1], loop.Invariant(next)});
  const std::vector<Node*> exits = loop.Close({count, sum});
  graph_.Target("target", {graph_.Neg("later", exits[1])});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"later:0"});
  EXPECT_EQ(WhyNotAll("loop/"), kStaged);
  EXPECT_EQ(WhyNot(graph_.Find("limit")).first, StepReason::kNoSource);
}

TEST_F(ControlFlowPartitionTest, ALoopWithAVariableInItsBodyStays) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 3), &graph_);
  Node* sum = graph_.AddN(
      "loop/sum", {loop.body()[0], loop.Invariant(graph_.ReadVariable("v"))});
  graph_.Target("target", {loop.Close({sum})[0]});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"next:0"});
  EXPECT_EQ(WhyNotAll("loop/"), Reason(StepReason::kVariable, "v_handle"));
}

TEST_F(ControlFlowPartitionTest, ALoopWithAMarkedNodeInItsConditionStays) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 3), &graph_);
  const_cast<Node*>(graph_.Find("loop/less"))->AddAttr(kTargetAttr, true);
  graph_.Target("target", {loop.Close({loop.body()[0]})[0]});
  Divide();
  EXPECT_EQ(WhyNotAll("loop/"), Reason(StepReason::kTarget, "loop/less"));
}

TEST_F(ControlFlowPartitionTest, NestedLoopsRunAhead) {
  Node* next = graph_.Source("next");
  TestLoop outer("outer", {next}, graph_.Const("limit", 30), &graph_);
  Node* bound = outer.Invariant(graph_.Const("bound", 20));
  TestLoop inner("inner", {outer.body()[0]}, bound, &graph_);
  Node* sum = graph_.AddN("inner/sum", {inner.body()[0], inner.body()[0]});
  Node* inner_exit = inner.Close({sum})[0];
  Node* twice = graph_.AddN("outer/twice", {inner_exit, outer.body()[0]});
  graph_.Target("target", {outer.Close({twice})[0]});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"outer/exit0:0"});
  EXPECT_EQ(WhyNotAll("inner/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, ALoopInABranchRunsAhead) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  TestLoop loop("loop", {cond.In(true, next)}, cond.Const(true, "limit", 3),
                &graph_);
  Node* exit = loop.Close({graph_.Neg("loop/neg", loop.body()[0])})[0];
  graph_.Target("target", {cond.Result(cond.In(false, next), exit)});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"cond/merge0:0"});
  EXPECT_EQ(WhyNotAll("loop/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, AConditionalInALoopRunsAhead) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 3), &graph_);
  Node* less = graph_.Less("cond/less", loop.body()[0],
                           loop.Invariant(graph_.Const("two", 2)));
  TestConditional cond("cond", less, &graph_);
  Node* merge = cond.Result(cond.In(false, loop.body()[0]),
                            graph_.Neg("neg", cond.In(true, loop.body()[0])));
  graph_.Target("target", {loop.Close({merge})[0]});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"loop/exit0:0"});
}

// Such a loop would wait for ever for an iteration that does not come.
TEST_F(ControlFlowPartitionTest, ALoopWhoseVariableMayDieStays) {
  Node* next = graph_.Source("next");
  TestLoop loop("loop", {next}, graph_.Const("limit", 3), &graph_);
  Node* less = graph_.Less("cond/less", loop.body()[0],
                           loop.Invariant(graph_.Const("two", 2)));
  TestConditional cond("cond", less, &graph_);
  graph_.Target("target", {loop.Close({cond.In(true, loop.body()[0])})[0]});
  Divide();
  EXPECT_EQ(WhyNotAll("loop/"),
            Reason(StepReason::kControlFlow, "loop/merge0"));
}

TEST_F(ControlFlowPartitionTest, ALoopWithoutASourceIsShared) {
  TestLoop loop("loop", {graph_.Const("zero", 0)}, graph_.Const("limit", 3),
                &graph_);
  Node* exit = loop.Close({graph_.Neg("loop/neg", loop.body()[0])})[0];
  Node* sum = graph_.AddN("sum", {graph_.Source("next"), exit});
  graph_.Target("target", {sum, exit});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"sum:0"});
  EXPECT_EQ(WhyNotAll("loop/"), Reason(StepReason::kNoSource, ""));
}

TEST_F(ControlFlowPartitionTest, ALoopOfDrawsRunsAheadForItsUsers) {
  Node* draw = graph_.Random("draw");
  TestLoop loop("loop", {draw}, graph_.Const("limit", 3), &graph_);
  Node* exit = loop.Close({graph_.Neg("loop/neg", loop.body()[0])})[0];
  Node* sum = graph_.AddN("sum", {graph_.Source("next"), exit});
  graph_.Target("target", {sum});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"sum:0"});
  EXPECT_EQ(WhyNotAll("loop/"), kStaged);
}

TEST_F(ControlFlowPartitionTest, ALoopOfDrawsThatTheStepUsesStays) {
  Node* draw = graph_.Random("draw");
  TestLoop loop("loop", {draw}, graph_.Const("limit", 3), &graph_);
  Node* exit = loop.Close({graph_.Neg("loop/neg", loop.body()[0])})[0];
  Node* next = graph_.Source("next");
  Node* sum = graph_.AddN("sum", {next, exit});
  graph_.Target("target", {sum, exit});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"next:0"});
  EXPECT_EQ(WhyNot(draw).first, StepReason::kOncePerRecordOnBothSides);
  EXPECT_EQ(WhyNotAll("loop/").first, StepReason::kOncePerRecordOnBothSides);
}

// Without the stage, a step that fetches only the flag does not read a record.
TEST_F(ControlFlowPartitionTest, AConstructWithAResultOfNoSourceStays) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(graph_.Const("three", 3)), &graph_);
  Node* flag = cond.Result(cond.Const(false, "cond/no", 0),
                           cond.Const(true, "cond/yes", 1));
  Node* neg = graph_.AddN(
      "cond/neg", {cond.In(true, next), cond.Const(true, "cond/one", 1)});
  Node* merge = cond.Result(cond.In(false, next), neg);
  graph_.Target("target", {merge});
  graph_.Target("flag", {flag});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"next:0"});
  EXPECT_EQ(WhyNot(merge), Reason(StepReason::kControlFlow, "cond/merge0"));
}

TEST_F(ControlFlowPartitionTest,
       ALoopOverTwoSourcesStaysIfTheyCanBeTakenAlone) {
  Node* a = graph_.Source("a");
  Node* b = graph_.Source("b");
  TestLoop loop("loop", {graph_.Const("zero", 0), a, b},
                graph_.Const("limit", 3), &graph_);
  const std::vector<Node*> exits =
      loop.Close({loop.body()[0], graph_.Neg("loop/a", loop.body()[1]),
                  graph_.Neg("loop/b", loop.body()[2])});
  graph_.Target("target_a", {exits[1]});
  graph_.Target("target_b", {exits[2]});
  Divide();
  EXPECT_EQ(WhyNotAll("loop/"), Reason(StepReason::kControlFlow, "loop/exit1"));
  EXPECT_EQ(partition_->regions().size(), 2);
}

// Each variable of the loop receives the next one at the end of an iteration,
// so that all of them depend on both sources.
TEST_F(ControlFlowPartitionTest, ALoopMayMixItsSourcesFromRoundToRound) {
  Node* a = graph_.Source("a");
  Node* b = graph_.Source("b");
  TestLoop loop("loop", {graph_.AddN("both", {a, b}), a, b},
                graph_.Const("limit", 3), &graph_);
  const std::vector<Node*> exits =
      loop.Close({loop.body()[1], loop.body()[2], loop.body()[0]});
  graph_.Target("target", {exits[0], exits[1], exits[2]});
  Divide();
  EXPECT_EQ(Boundary(),
            (Strings{"loop/exit0:0", "loop/exit1:0", "loop/exit2:0"}));
}

TEST_F(ControlFlowPartitionTest, ASourceInABranchStays) {
  Node* next = graph_.Source("next");
  TestConditional cond("cond", Predicate(next), &graph_);
  Node* iterator = graph_.Iterator("iterator");
  NodeBuilder handle("cond/handle", "Switch");
  handle.Input(iterator).Input(const_cast<Node*>(graph_.Find("predicate")));
  Node* in_branch = graph_.Finalize(&handle);
  NodeBuilder builder("cond/other", "IteratorGetNext");
  builder.Input(in_branch, 1)
      .Attr("output_types", DataTypeVector{DT_INT64})
      .Attr("output_shapes", std::vector<PartialTensorShape>{TensorShape({})});
  Node* other = graph_.Finalize(&builder);
  Node* merge = cond.Result(cond.In(false, next), other);
  graph_.Target("target", {merge});
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"cond/pred:0", "next:0", "predicate:0"}));
  EXPECT_EQ(WhyNot(merge),
            Reason(StepReason::kConditionalSource, "cond/other"));
}

Node* TensorArray(TestGraph* graph, Out size) {
  NodeBuilder builder("array", "TensorArrayV3");
  builder.Input(size).Attr("dtype", DT_INT64);
  return graph->Finalize(&builder);
}

Node* Write(TestGraph* graph, const std::string& name, Node* array, Out index,
            Out value) {
  NodeBuilder builder(name, "TensorArrayWriteV3");
  builder.Input(array, 0).Input(index).Input(value).Input(array, 1);
  return graph->Finalize(&builder);
}

Node* Read(TestGraph* graph, const std::string& name, Node* array, Out index,
           Out flow) {
  NodeBuilder builder(name, "TensorArrayReadV3");
  builder.Input(array, 0).Input(index).Input(flow).Attr("dtype", DT_INT64);
  return graph->Finalize(&builder);
}

class TensorArrayPartitionTest : public ControlFlowPartitionTest {
 protected:
  // Adds an array to which `value` is written, and returns the flow.
  Node* Written(Out size, Out value) {
    array_ = TensorArray(&graph_, size);
    return Write(&graph_, "write", array_, Index("zero"), value);
  }

  Node* Index(const std::string& name) {
    const Tensor zero(int32{0});
    NodeBuilder builder(name, "Const");
    builder.Attr("dtype", DT_INT32).Attr("value", zero);
    return graph_.Finalize(&builder);
  }

  Node* array_ = nullptr;
};

TEST_F(TensorArrayPartitionTest, AnArrayRunsAheadWithAllOfItsUsers) {
  Node* next = graph_.Source("next");
  Node* flow = Written(Index("size"), next);
  Node* read = Read(&graph_, "read", array_, Index("at"), flow);
  graph_.Target("target", {read});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"read:0"});
  EXPECT_EQ(WhyNot(array_), kStaged);
}

TEST_F(TensorArrayPartitionTest, AnArrayThatTheStepWritesStays) {
  Node* next = graph_.Source("next");
  Node* sum = graph_.AddN("sum", {next, graph_.ReadVariable("v")});
  Node* flow = Written(Index("size"), sum);
  Node* read = Read(&graph_, "read", array_, Index("at"), flow);
  graph_.Target("target", {read});
  Divide();
  EXPECT_EQ(Boundary(), Strings{"next:0"});
  EXPECT_EQ(WhyNot(read), Reason(StepReason::kVariable, "v_handle"));
}

// The size of such an array is not known before the record.
TEST_F(TensorArrayPartitionTest, TheHandleOfAnArrayIsNotCarried) {
  Node* next = graph_.Source("next");
  NodeBuilder cast("size", "Cast");
  cast.Input(next).Attr("DstT", DT_INT32);
  Node* flow = Written(graph_.Finalize(&cast), next);
  Node* read = Read(&graph_, "read", array_, Index("at"), flow);
  read->AddAttr(kTargetAttr, true);
  Divide();
  EXPECT_EQ(Boundary(), (Strings{"next:0", "size:0"}));
  EXPECT_EQ(WhyNot(array_).first, StepReason::kOncePerRecordOnBothSides);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
