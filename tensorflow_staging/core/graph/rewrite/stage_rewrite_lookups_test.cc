// SPDX-License-Identifier: Apache-2.0
//
// Tests the stages of lookups: the partition for lookups, their plan, and the
// rewrite of a graph that has its other stages already.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/lookup_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChainedLookupsTest : public ::testing::Test {
 protected:
  Status Rewrite(bool smart_stage) {
    TF_RETURN_IF_ERROR(RewriteStages(
        StagePlan(*graph_.get(), smart_stage, /*name=*/""), {}, graph_.get()));
    const StaleReads stale(*graph_.get());
    const StagePlan plan(*graph_.get(), stale, "lookups");
    for (const PlannedStage& stage : plan.stages()) {
      stages_.push_back(stage.name);
      nodes_.push_back(Names(stage.region->nodes));
    }
    RewriteOptions options;
    options.beside_take = true;
    return RewriteStages(plan, options, graph_.get());
  }

  std::string Op(const std::string& name) const {
    const Node* node = graph_.Find(name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  LookupGraph graph_;
  // Of the plan for lookups.
  Strings stages_;
  std::vector<Strings> nodes_;
};

TEST_F(ChainedLookupsTest, WithoutAnotherStageTheRegionBeginsAtTheIterator) {
  graph_.AddStep(graph_.Neg("hash", graph_.Source("next")));
  ASSERT_EQ(Rewrite(/*smart_stage=*/false), OkStatus());
  ASSERT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_THAT(nodes_[0], ElementsAre("next", "hash", "row", "twice"));
  EXPECT_EQ(Op("lookups/staged/row"), "ResourceGather");
  EXPECT_THAT(graph_.Inputs("lookups/staged/row"),
              ElementsAre("table", "lookups/staged/hash"));
  // The step updates what it has looked up, with the ids of its record.
  EXPECT_THAT(graph_.Inputs("update"), ElementsAre("table", "hash", "loss"));
  EXPECT_EQ(Op("hash"), "Identity");
  EXPECT_THAT(graph_.Inputs("loss"), ElementsAre("twice", "weight"));
  EXPECT_EQ(Op("twice"), "Identity");
}

// The variable has changed when the step runs, so it could not look up the row
// again.
TEST_F(ChainedLookupsTest, RecordsCarryWhatTheLookupsYield) {
  graph_.AddStep(graph_.Source("next"));
  ASSERT_EQ(Rewrite(/*smart_stage=*/false), OkStatus());
  EXPECT_THAT(graph_.Inputs("lookups/TensorBufferPut"),
              ElementsAre("lookups/staged/next", "lookups/staged/row",
                          "lookups/staged/twice"));
  EXPECT_EQ(Op("row"), "Identity");
  EXPECT_THAT(graph_.Inputs("row"), ElementsAre("lookups/TensorBufferTake:1"));
}

TEST_F(ChainedLookupsTest, TheStageIsChainedAfterThatOfSmartStage) {
  graph_.AddStep(graph_.Neg("hash", graph_.Source("next")));
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  ASSERT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_THAT(nodes_[0],
              ElementsAre("prefetch/TensorBufferTake", "hash", "row", "twice"));
  EXPECT_EQ(Op("prefetch/staged/hash"), "Neg");
  EXPECT_EQ(Op("lookups/staged/prefetch/TensorBufferTake"), "TensorBufferTake");
  // The stand-in of the first stage passes on its value to the second one.
  EXPECT_EQ(Op("lookups/staged/hash"), "Identity");
  EXPECT_TRUE(IsPass(*graph_.Find("lookups/staged/hash")));
  EXPECT_FALSE(IsStandIn(*graph_.Find("lookups/staged/hash")));
  EXPECT_THAT(graph_.Inputs("lookups/staged/row"),
              ElementsAre("table", "lookups/staged/hash"));
  // The step has stand-ins of its own.
  EXPECT_TRUE(IsStandIn(*graph_.Find("hash")));
  EXPECT_THAT(graph_.Inputs("update"), ElementsAre("table", "hash", "loss"));
  EXPECT_THAT(graph_.Inputs("hash"), ElementsAre("lookups/TensorBufferTake"));
  EXPECT_TRUE(IsStandIn(*graph_.Find("next")));
}

TEST_F(ChainedLookupsTest, AStandInOfSeveralOutputsIsPassedOn) {
  Node* next = graph_.Source("next", 2);
  graph_.AddStep({graph_.IdentityN("pair", {{next, 0}, {next, 1}}), 1});
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  ASSERT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_EQ(Op("lookups/staged/pair"), "StagedNode");
  EXPECT_EQ(Op("lookups/staged/row"), "ResourceGather");
  EXPECT_EQ(Op("pair"), "StagedNode");
  EXPECT_TRUE(IsStandIn(*graph_.Find("pair")));
}

TEST_F(ChainedLookupsTest, TheStageIsChainedAfterAManualStage) {
  graph_.AddStep(graph_.Stage("manual", {graph_.Source("next")}));
  ASSERT_EQ(Rewrite(/*smart_stage=*/false), OkStatus());
  ASSERT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_THAT(graph_.Inputs("manual/TensorBufferPut"), ElementsAre("next"));
  EXPECT_EQ(Op("lookups/staged/manual/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("manual/TensorBufferTake"), "Identity");
  EXPECT_THAT(graph_.Inputs("update"),
              ElementsAre("table", "manual/TensorBufferTake", "loss"));
}

TEST_F(ChainedLookupsTest, LookupsOfAnIteratorThatIsSavedRunAheadToo) {
  Node* iterator = graph_.Iterator("iterator");
  NodeBuilder save("save", "SerializeIterator");
  save.Input(iterator);
  graph_.Finalize(&save);
  graph_.AddStep(graph_.GetNext("next", iterator));
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  ASSERT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_EQ(Op("lookups/staged/prefetch/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("lookups/staged/row"), "ResourceGather");
}

TEST_F(ChainedLookupsTest, NothingIsStagedWithoutALookup) {
  graph_.Target("target", {graph_.Neg("hash", graph_.Source("next")),
                           graph_.ReadVariable("weight")});
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_THAT(stages_, IsEmpty());
}

TEST_F(ChainedLookupsTest, SavingNeedsNoRecord) {
  const LookupGraph::Step step = graph_.AddStep(graph_.Source("next"));
  graph_.Identity("saved", graph_.Read("read", step.table));
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_THAT(stages_, ElementsAre("lookups"));
  EXPECT_THAT(graph_.Inputs("saved"), ElementsAre("read"));
  EXPECT_THAT(graph_.Inputs("read"), ElementsAre("table"));
}

TEST_F(ChainedLookupsTest, AMarkedLookupStaysInTheStep) {
  const LookupGraph::Step step = graph_.AddStep(graph_.Source("next"));
  step.row->AddAttr(kTargetAttr, true);
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_THAT(stages_, IsEmpty());
}

// What the lookup has fetched from a server must not go back there.
TEST_F(ChainedLookupsTest, StandInsAreInTheTaskOfTheTake) {
  Node* next = graph_.Source("next");
  next->set_requested_device("/job:worker/task:1");
  const LookupGraph::Step step = graph_.AddStep(next);
  step.table->set_requested_device("/job:ps/task:0");
  step.row->set_requested_device("/job:ps/task:0");
  step.row->AddAttr(kColocationAttrName, Strings{"loc:@table"});
  step.twice->set_requested_device("/job:worker/task:1/device:CPU:0");
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  const Node* ahead = graph_.Find("lookups/staged/row");
  EXPECT_EQ(ahead->requested_device(), "/job:ps/task:0");
  EXPECT_NE(ahead->attrs().Find(kColocationAttrName), nullptr);
  const Node* stand_in = graph_.Find("row");
  EXPECT_EQ(stand_in->requested_device(),
            graph_.Find("lookups/TensorBufferTake")->requested_device());
  EXPECT_EQ(stand_in->attrs().Find(kColocationAttrName), nullptr);
  EXPECT_EQ(graph_.Find("twice")->requested_device(),
            "/job:worker/task:1/device:CPU:0");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
