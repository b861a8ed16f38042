// SPDX-License-Identifier: Apache-2.0
//
// The partition of graphs with several sources of records.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using Cause = std::pair<StepReason, std::string>;

class SeveralSourcesTest : public ::testing::Test {
 protected:
  // The nodes of each region.
  std::vector<Strings> Regions() {
    partition_ = std::make_unique<StagePartition>(*graph_.get());
    std::vector<Strings> regions;
    for (const StagedRegion& region : partition_->regions()) {
      regions.push_back(Names(region.nodes));
    }
    return regions;
  }

  Cause WhyNot(const Node* node) const {
    const LocatedReason cause = partition_->WhyNot(*node);
    return {cause.reason, cause.node == nullptr ? "" : cause.node->name()};
  }

  TestGraph graph_;

 private:
  std::unique_ptr<StagePartition> partition_;
};

TEST_F(SeveralSourcesTest, EachOfSeveralIteratorsHasItsRegion) {
  Node* b = graph_.Neg("b", graph_.Source("b_next"));
  Node* a = graph_.Neg("a", graph_.Source("a_next"));
  graph_.Target("target", {a, b});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"a_next", "a"}, {"b_next", "b"}}));
}

TEST_F(SeveralSourcesTest, IteratorsThatAreUsedTogetherShareARegion) {
  Node* both =
      graph_.AddN("both", {graph_.Source("b_next"), graph_.Source("a_next")});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"b_next", "a_next", "both"}}));
}

TEST_F(SeveralSourcesTest,
       UnusedOutputsOfSourcesThatShareARegionAreNotCarried) {
  Node* both = graph_.AddN(
      "both", {{graph_.Source("a_next", 2), 0}, graph_.Source("b_next")});
  graph_.Target("target", {both});
  StagePartition partition(*graph_.get());
  ASSERT_EQ(partition.regions().size(), 1);
  const StagedRegion& region = partition.regions().front();
  EXPECT_EQ(Names(region.sources), (Strings{"a_next", "b_next"}));
  ASSERT_EQ(region.boundary.size(), 1);
  EXPECT_EQ(region.boundary.front().name(), "both:0");
}

// A step that fetches `target_a` alone advances one iterator alone.
TEST_F(SeveralSourcesTest, WhatMixesSourcesThatTheStepUsesApartStays) {
  Node* a = graph_.Neg("a", graph_.Source("a_next"));
  Node* b = graph_.Source("b_next");
  Node* both = graph_.AddN("both", {a, b});
  graph_.Target("target", {both});
  graph_.Target("target_a", {a});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next", "a"}, {"b_next"}}));
  EXPECT_EQ(WhyNot(both), Cause(StepReason::kMixedSources, "both"));
}

TEST_F(SeveralSourcesTest, ALeafUsesASourceApartAsWell) {
  Node* a = graph_.Source("a_next");
  Node* both = graph_.AddN("both", {a, graph_.Source("b_next")});
  graph_.Target("target", {both});
  graph_.Neg("leaf", a);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next"}, {"b_next"}}));
}

TEST_F(SeveralSourcesTest, SourcesAreMixedByOrderToo) {
  Node* a = graph_.Source("a_next");
  Node* b = graph_.Source("b_next");
  graph_.AddControl(a, b);
  graph_.Target("target", {b});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next", "b_next"}}));
}

TEST_F(SeveralSourcesTest, ADrawForTwoSourcesMixesThem) {
  Node* random = graph_.Random("random");
  Node* a = graph_.AddN("a", {graph_.Source("a_next"), random});
  Node* b = graph_.AddN("b", {graph_.Source("b_next"), random});
  graph_.Target("target", {a, b});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next"}, {"b_next"}}));
  EXPECT_EQ(WhyNot(a), Cause(StepReason::kMixedSources, "random"));
}

TEST_F(SeveralSourcesTest,
       TwoElementsOfOneIteratorThatAreUsedTogetherRunAhead) {
  Node* iterator = graph_.Iterator("iterator");
  Node* both = graph_.AddN("both", {graph_.GetNext("first", iterator),
                                    graph_.GetNext("second", iterator)});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"first", "second", "both"}}));
}

TEST_F(SeveralSourcesTest, TwoElementsOfOneIteratorThatAreUsedApartStay) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  Node* second = graph_.GetNext("second", iterator);
  graph_.Target("train", {first});
  graph_.Target("evaluate", {second});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Cause(StepReason::kMixedSources, "first"));
  EXPECT_EQ(WhyNot(second), Cause(StepReason::kMixedSources, "second"));
}

// Records that ran ahead would be missing from what the step reads.
TEST_F(SeveralSourcesTest, AnIteratorThatTheStepReadsItselfStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  Node* second = graph_.GetNext("second", iterator);
  graph_.AddControl(graph_.RefVariable("v"), second);
  graph_.Target("target", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Cause(StepReason::kMixedSources, "first"));
  EXPECT_EQ(WhyNot(second), Cause(StepReason::kVariable, "v"));
}

TEST_F(SeveralSourcesTest, AnIteratorWithAnElementThatNothingUsesStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  graph_.GetNext("second", iterator);
  graph_.Target("target", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>());
}

TEST_F(SeveralSourcesTest, ASavedIteratorStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {next});
  NodeBuilder save("save", "SerializeIterator");
  save.Input(iterator);
  graph_.Finalize(&save);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next), Cause(StepReason::kSavedIterator, "save"));
}

// A branch of control flow of version 1 is given the handle by its Switch.
TEST_F(SeveralSourcesTest, AnIteratorThatABranchMayReadStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {next});
  NodeBuilder condition("condition", "Placeholder");
  condition.Attr("dtype", DT_BOOL);
  NodeBuilder handle("switch", "Switch");
  handle.Input(iterator).Input(graph_.Finalize(&condition));
  graph_.Finalize(&handle);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next), Cause(StepReason::kSharedIterator, "switch"));
}

TEST_F(SeveralSourcesTest, AnIteratorThatAFunctionMayReadStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {next});
  NameAttrList function;
  function.set_name("f");
  NodeBuilder call("call", "StatefulPartitionedCall");
  call.Input(std::vector<NodeBuilder::NodeOut>{iterator})
      .Attr("Tout", DataTypeVector{DT_INT64})
      .Attr("f", function);
  graph_.Finalize(&call);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next), Cause(StepReason::kSharedIterator, "call"));
}

TEST_F(SeveralSourcesTest, AnIteratorThatAnotherHandleMayReadStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {next});
  NodeBuilder to_string("to_string", "IteratorToStringHandle");
  to_string.Input(iterator);
  graph_.Finalize(&to_string);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));

  const auto add_handle = [this](const std::string& name, DataType type) {
    AttrValue types;
    types.mutable_list()->add_type(type);
    graph_.Lone(name, "IteratorFromStringHandleV2", {{"output_types", types}});
  };
  add_handle("of_other_records", DT_STRING);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));

  add_handle("of_such_records", DT_INT64);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next),
            Cause(StepReason::kSharedIterator, "of_such_records"));
}

TEST_F(SeveralSourcesTest, WhatInitialisesAnIteratorDoesNotReadIt) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  graph_.InitializeWithRange("init", iterator, 0, 4);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));
}

TEST_F(SeveralSourcesTest, AStageByHandIsExtended) {
  Node* take =
      graph_.Stage("prefetch", {graph_.Neg("a", graph_.Source("next"))});
  graph_.Target("target", {graph_.Neg("b", take)});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"prefetch/TensorBufferTake", "b"}}));
  EXPECT_EQ(WhyNot(graph_.Find("a")),
            Cause(StepReason::kStagedByHand, "prefetch/TensorBufferPut"));
}

TEST_F(SeveralSourcesTest, WhatLeadsToAStageByHandStaysWhereItIs) {
  Node* next = graph_.Source("next");
  Node* random = graph_.Random("random");
  graph_.Stage("prefetch", {graph_.AddN("a", {next, random})});
  Node* b = graph_.Neg("b", next);
  graph_.Target("target", {b});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  const Cause by_hand = {StepReason::kStagedByHand, "prefetch/TensorBufferPut"};
  EXPECT_EQ(WhyNot(next), by_hand);
  EXPECT_EQ(WhyNot(random), by_hand);
  EXPECT_EQ(WhyNot(b), by_hand);
}

TEST_F(SeveralSourcesTest, OfAChainOfStagesTheLastIsExtended) {
  Node* first = graph_.Stage("first", {graph_.Source("next")});
  Node* second = graph_.Stage("second", {graph_.Neg("between", first)});
  graph_.Target("target", {graph_.Neg("after", second)});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"second/TensorBufferTake", "after"}}));
  EXPECT_EQ(WhyNot(first),
            Cause(StepReason::kStagedByHand, "second/TensorBufferPut"));
}

TEST_F(SeveralSourcesTest, AnIteratorAndAStageByHandRunAheadApart) {
  Node* take = graph_.Stage("prefetch", {graph_.Source("staged_next")});
  Node* a = graph_.Neg("a", take);
  Node* b = graph_.Neg("b", graph_.Source("next"));
  Node* both = graph_.AddN("both", {a, b});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{
                           {"next", "b"}, {"prefetch/TensorBufferTake", "a"}}));
  EXPECT_EQ(WhyNot(both), Cause(StepReason::kMixedSources, "both"));
}

TEST_F(SeveralSourcesTest, StagesByHandRunAheadApart) {
  Node* a = graph_.Stage("a_stage", {graph_.Source("a_next")});
  Node* b = graph_.Stage("b_stage", {graph_.Source("b_next")});
  Node* both = graph_.AddN("both", {graph_.Neg("a", a), graph_.Neg("b", b)});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"a_stage/TensorBufferTake", "a"},
                                  {"b_stage/TensorBufferTake", "b"}}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
