// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/run_once.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class RunOnceTest : public ::testing::Test {
 protected:
  Node* Assign(const std::string& name, Node* variable, TestGraph::Out value) {
    NodeBuilder builder(name, "Assign");
    builder.Input(variable).Input(value);
    return graph_.Finalize(&builder);
  }

  std::vector<std::string> Found() {
    const std::vector<bool> once = FindNodesThatRunOnce(*graph_.get());
    std::vector<const Node*> found;
    for (const Node* node : graph_.get()->op_nodes()) {
      if (once[node->id()]) found.push_back(node);
    }
    return Names(found);
  }

  TestGraph graph_;
};

TEST_F(RunOnceTest, AnIteratorItsDatasetAndItsInitialiserDo) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.InitializeWithRange("make", iterator, 0, 3);
  graph_.Neg("neg", graph_.GetNext("next", iterator));
  EXPECT_THAT(Found(),
              UnorderedElementsAre("iterator", "make", "make/range",
                                   "make/start", "make/stop", "make/step"));
}

TEST_F(RunOnceTest, TheStringThatStandsForAnIteratorDoes) {
  Node* iterator = graph_.Iterator("iterator");
  NodeBuilder builder("string", "IteratorToStringHandle");
  builder.Input(iterator);
  graph_.Finalize(&builder);
  graph_.Neg("neg", graph_.GetNext("next", iterator));
  EXPECT_THAT(Found(), UnorderedElementsAre("iterator", "string"));
}

TEST_F(RunOnceTest, AnInitialiserItsInitialValueAndItsGroupsDo) {
  Node* variable = graph_.RefVariable("v");
  Node* assign =
      Assign("assign", variable, graph_.Neg("neg", graph_.Const("one", 1)));
  Node* init = graph_.NoOp("init");
  graph_.AddControl(assign, init);
  graph_.AddControl(init, graph_.NoOp("all"));
  graph_.Identity("read", variable);
  EXPECT_THAT(Found(),
              UnorderedElementsAre("assign", "neg", "one", "init", "all"));
}

TEST_F(RunOnceTest, AnUpdateDoesNot) {
  Node* variable = graph_.RefVariable("v");
  Node* assign = Assign("assign", variable, graph_.Source("next"));
  graph_.AddControl(assign, graph_.NoOp("train"));
  EXPECT_THAT(Found(), UnorderedElementsAre("next_iterator"));
}

TEST_F(RunOnceTest, AGroupOfAnInitialiserAndAnUpdateDoesNot) {
  Node* group = graph_.NoOp("group");
  graph_.AddControl(
      Assign("assign", graph_.RefVariable("v"), graph_.Const("one", 1)), group);
  graph_.AddControl(
      Assign("update", graph_.RefVariable("w"), graph_.Source("next")), group);
  EXPECT_THAT(Found(), UnorderedElementsAre("assign", "one", "next_iterator"));
}

TEST_F(RunOnceTest, AnInitialValueThatTheStepUsesDoesNot) {
  Node* one = graph_.Const("one", 1);
  Assign("assign", graph_.RefVariable("v"), one);
  graph_.Neg("neg", one);
  EXPECT_THAT(Found(), UnorderedElementsAre("assign"));
}

TEST_F(RunOnceTest, ATableAndItsInitialiserDoALookupDoesNot) {
  Node* table = graph_.Table("table", "HashTableV2");
  NodeBuilder builder("fill", "InitializeTableV2");
  builder.Input(table)
      .Input(graph_.Const("keys", 1))
      .Input(graph_.Const("values", 2));
  graph_.Finalize(&builder);
  graph_.Lookup("lookup", table, graph_.Source("next"));
  EXPECT_THAT(Found(), UnorderedElementsAre("table", "fill", "keys", "values",
                                            "next_iterator"));
}

TEST_F(RunOnceTest, TheQuestionWhetherAVariableIsInitialisedDoes) {
  NodeBuilder asked("asked", "IsVariableInitialized");
  asked.Input(graph_.RefVariable("v")).Attr("dtype", DT_INT64);
  NodeBuilder negated("not", "LogicalNot");
  negated.Input(graph_.Finalize(&asked));
  graph_.Finalize(&negated);
  EXPECT_THAT(Found(), UnorderedElementsAre("asked", "not"));
}

TEST_F(RunOnceTest, ADatasetThatNothingUsesDoes) {
  Node* iterator = graph_.Iterator("iterator");
  Node* make = graph_.InitializeWithRange("make", iterator, 0, 3);
  graph_.get()->RemoveNode(make);
  graph_.get()->RemoveNode(iterator);
  EXPECT_THAT(Found(), UnorderedElementsAre("make/range", "make/start",
                                            "make/stop", "make/step"));
}

TEST_F(RunOnceTest, AConstantWithoutUsersDoesNot) {
  graph_.Const("lone", 1);
  graph_.Neg("neg", graph_.Const("one", 1));
  EXPECT_THAT(Found(), IsEmpty());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
