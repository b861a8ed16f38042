// SPDX-License-Identifier: Apache-2.0
//
// Tests the partition of graphs with several sources.

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
// A reason, and the name of the node that it is about.
using Reason = std::pair<StepReason, std::string>;

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

  Reason WhyNot(const Node* node) const {
    const LocatedReason located = partition_->WhyNot(*node);
    return {located.reason,
            located.node == nullptr ? "" : located.node->name()};
  }

  TestGraph graph_;

 private:
  std::unique_ptr<StagePartition> partition_;
};

TEST_F(SeveralSourcesTest, EachIteratorHasItsOwnRegion) {
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

TEST_F(SeveralSourcesTest, ARecordCarriesTheElementsOfAllItsSources) {
  Node* both = graph_.AddN(
      "both", {{graph_.Source("a_next", 2), 0}, graph_.Source("b_next")});
  graph_.Target("target", {both});
  for (const RecordContent content :
       {RecordContent::kElements, RecordContent::kBoundaryOnly}) {
    StagePartition partition(*graph_.get(), NodeFilter(), content);
    ASSERT_EQ(partition.regions().size(), 1);
    const StagedRegion& region = partition.regions().front();
    EXPECT_EQ(Names(region.sources), (Strings{"a_next", "b_next"}));
    Strings boundary;
    for (const StagedTensor& tensor : region.boundary) {
      boundary.push_back(tensor.name());
    }
    EXPECT_EQ(boundary,
              content == RecordContent::kElements
                  ? (Strings{"a_next:0", "a_next:1", "b_next:0", "both:0"})
                  : Strings{"both:0"});
  }
}

// A step that fetches `target_a` alone advances one iterator alone.
TEST_F(SeveralSourcesTest, ANodeStaysIfTheStepUsesItsSourcesSeparately) {
  Node* a = graph_.Neg("a", graph_.Source("a_next"));
  Node* b = graph_.Source("b_next");
  Node* both = graph_.AddN("both", {a, b});
  graph_.Target("target", {both});
  graph_.Target("target_a", {a});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next", "a"}, {"b_next"}}));
  EXPECT_EQ(WhyNot(both), Reason(StepReason::kMixedSources, "both"));
}

TEST_F(SeveralSourcesTest, ALeafAlsoUsesASourceSeparately) {
  Node* a = graph_.Source("a_next");
  Node* both = graph_.AddN("both", {a, graph_.Source("b_next")});
  graph_.Target("target", {both});
  graph_.Neg("leaf", a);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next"}, {"b_next"}}));
}

TEST_F(SeveralSourcesTest, AControlEdgeAlsoJoinsSources) {
  Node* a = graph_.Source("a_next");
  Node* b = graph_.Source("b_next");
  graph_.AddControl(a, b);
  graph_.Target("target", {b});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next", "b_next"}}));
}

TEST_F(SeveralSourcesTest, ADrawUsedWithTwoSourcesJoinsThem) {
  Node* random = graph_.Random("random");
  Node* a = graph_.AddN("a", {graph_.Source("a_next"), random});
  Node* b = graph_.AddN("b", {graph_.Source("b_next"), random});
  graph_.Target("target", {a, b});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a_next"}, {"b_next"}}));
  EXPECT_EQ(WhyNot(a), Reason(StepReason::kMixedSources, "random"));
}

TEST_F(SeveralSourcesTest,
       TwoElementsOfOneIteratorThatAreUsedTogetherRunAhead) {
  Node* iterator = graph_.Iterator("iterator");
  Node* both = graph_.AddN("both", {graph_.GetNext("first", iterator),
                                    graph_.GetNext("second", iterator)});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"first", "second", "both"}}));
}

TEST_F(SeveralSourcesTest, TwoElementsOfOneIteratorThatAreUsedSeparatelyStay) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  Node* second = graph_.GetNext("second", iterator);
  graph_.Target("train", {first});
  graph_.Target("evaluate", {second});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Reason(StepReason::kMixedSources, "first"));
  EXPECT_EQ(WhyNot(second), Reason(StepReason::kMixedSources, "second"));
}

// The step would miss the records that ran ahead.
TEST_F(SeveralSourcesTest, AnIteratorThatTheStepAlsoReadsStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  Node* second = graph_.GetNext("second", iterator);
  graph_.AddControl(graph_.RefVariable("v"), second);
  graph_.Target("target", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Reason(StepReason::kMixedSources, "first"));
  EXPECT_EQ(WhyNot(second), Reason(StepReason::kVariable, "v"));
}

TEST_F(SeveralSourcesTest, AnIteratorWithAnUnusedElementStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.GetNext("first", iterator);
  graph_.GetNext("second", iterator);
  graph_.Target("target", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>());
}

// What was read ahead is saved and restored with its position.
TEST_F(SeveralSourcesTest, AnIteratorThatIsSavedAndRestoredRunsAhead) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  NodeBuilder save("save", "SerializeIterator");
  save.Input(iterator);
  NodeBuilder restore("restore", "DeserializeIterator");
  restore.Input(iterator).Input(graph_.Finalize(&save));
  graph_.Finalize(&restore);
  EXPECT_EQ(Regions(), std::vector<Strings>{{"next"}});
}

// A branch of version 1 control flow receives the handle from its Switch.
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
  EXPECT_EQ(WhyNot(next), Reason(StepReason::kSharedIterator, "switch"));
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
  EXPECT_EQ(WhyNot(next), Reason(StepReason::kSharedIterator, "call"));
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
  add_handle("other_type", DT_STRING);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));

  add_handle("same_type", DT_INT64);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next), Reason(StepReason::kSharedIterator, "same_type"));
}

// Such as a remote call, whose function reads the iterator.
TEST_F(SeveralSourcesTest, AnIteratorWhoseStringHandleIsUsedStays) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {next});
  NodeBuilder to_string("to_string", "IteratorToStringHandle");
  to_string.Input(iterator);
  Node* handle = graph_.Finalize(&to_string);
  graph_.AddControl(handle, graph_.NoOp("waits"));
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));

  graph_.Identity("user", handle);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next), Reason(StepReason::kSharedIterator, "user"));
}

TEST_F(SeveralSourcesTest, AnInitialiserDoesNotReadItsIterator) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  graph_.InitializeWithRange("init", iterator, 0, 4);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next"}}));
}

TEST_F(SeveralSourcesTest, AManualStageIsExtended) {
  Node* take =
      graph_.Stage("prefetch", {graph_.Neg("a", graph_.Source("next"))});
  graph_.Target("target", {graph_.Neg("b", take)});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"prefetch/TensorBufferTake", "b"}}));
  EXPECT_EQ(WhyNot(graph_.Find("a")),
            Reason(StepReason::kManualStage, "prefetch/TensorBufferPut"));
}

TEST_F(SeveralSourcesTest, NodesThatLeadToAPutBelongToItsManualStage) {
  Node* next = graph_.Source("next");
  Node* random = graph_.Random("random");
  graph_.Stage("prefetch", {graph_.AddN("a", {next, random})});
  Node* b = graph_.Neg("b", next);
  graph_.Target("target", {b});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  const Reason reason = {StepReason::kManualStage, "prefetch/TensorBufferPut"};
  EXPECT_EQ(WhyNot(next), reason);
  EXPECT_EQ(WhyNot(random), reason);
  EXPECT_EQ(WhyNot(b), reason);
}

TEST_F(SeveralSourcesTest, OnlyTheLastStageOfAChainIsExtended) {
  Node* first = graph_.Stage("first", {graph_.Source("next")});
  Node* second = graph_.Stage("second", {graph_.Neg("between", first)});
  graph_.Target("target", {graph_.Neg("after", second)});
  EXPECT_EQ(Regions(),
            (std::vector<Strings>{{"second/TensorBufferTake", "after"}}));
  EXPECT_EQ(WhyNot(first),
            Reason(StepReason::kManualStage, "second/TensorBufferPut"));
}

TEST_F(SeveralSourcesTest, AnIteratorAndAManualStageHaveSeparateRegions) {
  Node* take = graph_.Stage("prefetch", {graph_.Source("staged_next")});
  Node* a = graph_.Neg("a", take);
  Node* b = graph_.Neg("b", graph_.Source("next"));
  Node* both = graph_.AddN("both", {a, b});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{
                           {"next", "b"}, {"prefetch/TensorBufferTake", "a"}}));
  EXPECT_EQ(WhyNot(both), Reason(StepReason::kMixedSources, "both"));
}

TEST_F(SeveralSourcesTest, ManualStagesHaveSeparateRegions) {
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
