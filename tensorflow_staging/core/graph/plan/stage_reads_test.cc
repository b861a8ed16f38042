// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stage_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;

// A graph, and what its first stage reads.
class StageReadsTest : public ::testing::Test {
 protected:
  // An assignment of `value` to the variable of a ReadVariableOp.
  Node* Assign(const std::string& name, const std::string& variable,
               Node* value) {
    NodeBuilder builder(name, "AssignVariableOp");
    builder
        .Input(const_cast<Node*>(FindNode(*graph_.get(), variable + "_handle")))
        .Input(value)
        .Attr("dtype", DT_INT64);
    return graph_.Finalize(&builder);
  }

  StageReads Find(bool smart_stage = false) {
    const StagePlan plan(*graph_.get(), smart_stage, /*name=*/"");
    return FindStageReads(*graph_.get(), plan).at(0);
  }

  TestGraph graph_;
};

TEST_F(StageReadsTest, NothingElseReadsAnIteratorOfOneGetNext) {
  Node* next = graph_.Source("next");
  graph_.Stage("stage", {next});
  // The step uses the same element.
  graph_.Target("target", {next});
  const StageReads reads = Find();
  ASSERT_EQ(reads.iterators.size(), 1);
  EXPECT_EQ(reads.iterators[0].iterator->name(), "next_iterator");
  EXPECT_TRUE(reads.iterators[0].other_readers.empty());
  EXPECT_TRUE(reads.changing.empty());
}

TEST_F(StageReadsTest, AnotherGetNextIsAnotherReader) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.InitializeWithRange("initializer", iterator, 0, 5);
  graph_.Stage("stage", {graph_.GetNext("next", iterator)});
  graph_.GetNext("beside", iterator);
  const StageReads reads = Find();
  ASSERT_EQ(reads.iterators.size(), 1);
  EXPECT_EQ(Names(reads.iterators[0].other_readers), Strings{"beside"});
}

TEST_F(StageReadsTest, TheRegionOfSmartStageCountsToo) {
  graph_.Target("target", {graph_.Neg("neg", graph_.Source("next"))});
  const StageReads reads = Find(/*smart_stage=*/true);
  ASSERT_EQ(reads.iterators.size(), 1);
  EXPECT_EQ(reads.iterators[0].iterator->name(), "next_iterator");
}

TEST_F(StageReadsTest, AChainReadsWhatItsOwnPartReads) {
  Node* first = graph_.Stage("a", {graph_.Source("next")});
  graph_.Stage("b", {graph_.AddN("sum", {first, graph_.Source("other")})});
  const StagePlan plan(*graph_.get(), /*smart_stage=*/false, /*name=*/"");
  const std::vector<StageReads> reads = FindStageReads(*graph_.get(), plan);
  ASSERT_EQ(reads.size(), 2);
  ASSERT_EQ(reads[1].iterators.size(), 1);
  EXPECT_EQ(reads[1].iterators[0].iterator->name(), "other_iterator");
}

TEST_F(StageReadsTest, AVariableOfOneInitialValueDoesNotChange) {
  Node* mode = graph_.ReadVariable("mode");
  Assign("init", "mode", graph_.Const("zero", 0));
  graph_.Stage("stage", {graph_.AddN("sum", {graph_.Source("next"), mode})});
  EXPECT_TRUE(Find().changing.empty());
}

TEST_F(StageReadsTest, AVariableThatTheProgramAssignsChanges) {
  Node* mode = graph_.ReadVariable("mode");
  Assign("init", "mode", graph_.Const("zero", 0));
  graph_.Stage("stage", {graph_.AddN("sum", {graph_.Source("next"), mode})});
  Assign("set", "mode", graph_.Placeholder("fed"));
  const StageReads reads = Find();
  ASSERT_EQ(reads.changing.size(), 1);
  EXPECT_EQ(reads.changing[0].owner->name(), "mode_handle");
  const Strings changers = Names(reads.changing[0].changers);
  EXPECT_EQ(changers.back(), "set");
}

TEST_F(StageReadsTest, WhatOnlyTheStepReadsDoesNotCount) {
  Node* mode = graph_.ReadVariable("mode");
  Assign("set", "mode", graph_.Placeholder("fed"));
  Node* taken = graph_.Stage("stage", {graph_.Source("next")});
  graph_.Target("target", {graph_.AddN("sum", {taken, mode})});
  EXPECT_TRUE(Find().changing.empty());
}

TEST_F(StageReadsTest, WhatTheStageItselfChangesDoesNotCount) {
  Node* mode = graph_.ReadVariable("mode");
  Node* set = Assign("set", "mode", graph_.Source("next"));
  Node* sum = graph_.AddN("sum", {mode});
  graph_.AddControl(set, sum);
  graph_.Stage("stage", {sum});
  EXPECT_TRUE(Find().changing.empty());
}

TEST_F(StageReadsTest, ATableThatGrowsChanges) {
  Node* table = graph_.Table("table", "MutableHashTableV2");
  graph_.Stage("stage", {graph_.Lookup("found", table, graph_.Source("next"))});
  NodeBuilder insert("insert", "LookupTableInsertV2");
  insert.Input(table)
      .Input(graph_.Const("key", 1))
      .Input(graph_.Const("value", 2));
  graph_.Finalize(&insert);
  const StageReads reads = Find();
  ASSERT_EQ(reads.changing.size(), 1);
  EXPECT_EQ(Names(reads.changing[0].changers), Strings{"insert"});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
