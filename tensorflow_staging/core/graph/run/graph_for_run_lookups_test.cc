// SPDX-License-Identifier: Apache-2.0
//
// Tests the graphs of runs where lookups run ahead of the step: a name may have
// a clone, a pass in the stage of the lookups, and a stand-in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/graph/run/graph_for_run.h"
#include "tensorflow_staging/core/testing/lookup_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

class LookupsForRunTest : public ::testing::Test {
 protected:
  void Rewrite(bool smart_stage = true) {
    TF_CHECK_OK(RewriteStages(
        StagePlan(*graph_.get(), smart_stage, /*name=*/""), {}, graph_.get()));
    const StaleReads stale(*graph_.get());
    TF_CHECK_OK(RewriteStages(StagePlan(*graph_.get(), stale, "lookups"), {},
                              graph_.get()));
    for (Node* node : graph_.get()->op_nodes()) {
      node->set_assigned_device_name(kCpu);
    }
  }

  Status Run(const Strings& fetches, const Strings& feeds = {}) {
    CallableOptions run;
    for (const std::string& tensor : fetches) run.add_fetch(tensor);
    for (const std::string& tensor : feeds) run.add_feed(tensor);
    return FindGraphForRun(*graph_.get(), run, &run_graph_);
  }

  // The op of a node in the graph of the run.
  std::string Op(const std::string& name) const {
    const Node* node = FindNode(*run_graph_, name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  Strings Inputs(const std::string& name) const {
    return InputsOf(*run_graph_, name);
  }

  LookupGraph graph_;
  std::unique_ptr<Graph> run_graph_;
};

TEST_F(LookupsForRunTest, AStepTakesOneRecordAndLooksUpNothing) {
  graph_.AddStep(graph_.Neg("hash", graph_.Source("next")));
  Rewrite();
  ASSERT_EQ(Run({"loss:0", "row:0", "hash:0", "next:0"}), OkStatus());
  EXPECT_EQ(Op("row"), "Identity");
  EXPECT_EQ(Op("hash"), "Identity");
  EXPECT_EQ(Op("lookups/TensorBufferTake"), "TensorBufferTake");
  EXPECT_EQ(Op("lookups/staged/row"), "(none)");
  EXPECT_EQ(Op("lookups/staged/prefetch/TensorBufferTake"), "(none)");
}

TEST_F(LookupsForRunTest, WhatNoRecordCarriesIsComputedFromTheElements) {
  graph_.AddStep(
      graph_.Neg("hash", graph_.Neg("parsed", graph_.Source("next"))));
  Rewrite();
  ASSERT_EQ(Run({"parsed:0", "loss:0"}), OkStatus());
  EXPECT_EQ(Op("parsed"), "Neg");
  EXPECT_THAT(Inputs("parsed"), ElementsAre("next"));
  EXPECT_EQ(Op("row"), "(none)");
  EXPECT_EQ(Op("twice"), "Identity");
}

TEST_F(LookupsForRunTest, FedIdsAreLookedUpInTheStep) {
  graph_.AddStep(graph_.Neg("hash", graph_.Source("next")));
  Rewrite();
  ASSERT_EQ(Run({"loss:0"}, {"hash:0"}), OkStatus());
  EXPECT_EQ(Op("row"), "ResourceGather");
  EXPECT_THAT(Inputs("row"), ElementsAre("table", "hash"));
  EXPECT_THAT(Inputs("twice"), ElementsAre("row", "row"));
  EXPECT_EQ(Op("lookups/TensorBufferTake"), "(none)");
}

TEST_F(LookupsForRunTest, WhatIsFedBeforeTheFirstStageReachesTheLookups) {
  graph_.AddStep(
      graph_.Neg("hash", graph_.Neg("parsed", graph_.Source("next"))));
  Rewrite();
  for (const char* fed : {"next:0", "parsed:0"}) {
    ASSERT_EQ(Run({"loss:0"}, {fed}), OkStatus());
    EXPECT_EQ(Op("hash"), "Neg") << fed;
    EXPECT_EQ(Op("row"), "ResourceGather") << fed;
    EXPECT_THAT(Inputs("row"), ElementsAre("table", "hash")) << fed;
    EXPECT_EQ(Op("lookups/TensorBufferTake"), "(none)") << fed;
  }
}

TEST_F(LookupsForRunTest, AFedTakeOfAManualStageReachesTheLookups) {
  for (const bool smart_stage : {false, true}) {
    LookupGraph graph;
    Node* take = graph.Stage("manual", {graph.Source("next")});
    Node* table = graph.Handle("table");
    Node* row = graph.ResourceGather("row", table, take);
    // With SmartStage, this extends the manual stage.
    Node* more = graph.Neg("more", take);
    graph.Update("update", table, more,
                 graph.AddN("loss", {row, graph.ReadVariable("weight")}));
    graph_.get()->Clear();
    graph_.get()->Copy(*graph.get());
    Rewrite(smart_stage);
    ASSERT_EQ(Run({"loss:0"}, {"manual/TensorBufferTake:0"}), OkStatus());
    EXPECT_EQ(Op("row"), "ResourceGather");
    EXPECT_THAT(Inputs("row"), ElementsAre("table", "manual/TensorBufferTake"));
    ASSERT_EQ(Run({"more:0", "manual/TensorBufferTake:0"}), OkStatus());
    EXPECT_EQ(Op("lookups/TensorBufferTake"), "TensorBufferTake");
  }
}

// As without lookups: the run would otherwise skip an element of the other.
TEST_F(LookupsForRunTest, AnElementOfOneJoinedSourceCannotBeFetchedAlone) {
  Node* a = graph_.Source("a");
  Node* b = graph_.Source("b");
  graph_.AddStep(graph_.AddN("hash", {a, b}));
  Rewrite();
  const Status status = Run({"a:0"});
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("but not of 'b'"));
  EXPECT_EQ(Run({"a:0", "loss:0"}), OkStatus());
  EXPECT_EQ(Run({"a:0", "hash:0"}), OkStatus());
  EXPECT_EQ(Run({"a:0", "b:0"}), OkStatus());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
