// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/late_iterator_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/lookup_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LateSourcesTest : public ::testing::Test {
 protected:
  LateSourcesTest() : iterator_(graph_.Iterator("iterator", 2)) {}

  // From now on, the stages of the graph run.
  void StagesBegin() {
    for (const Node* node : graph_.get()->op_nodes()) {
      begun_with_.insert(node->name());
    }
  }

  // A graph whose stage reads the iterator.
  void BeginWithOneSource() {
    Node* next = graph_.GetNext("next", iterator_, 2);
    graph_.Target("target", {graph_.Neg("a", {next, 1})});
    StagesBegin();
  }

  // Rewrites the grown graph.
  Status Rewrite() {
    const NodeFilter counts([this](const Node& node) {
      return begun_with_.count(node.name()) > 0;
    });
    const StagePlan plan(*graph_.get(), /*smart_stage=*/true, /*name=*/"",
                         counts, content_);
    TF_RETURN_IF_ERROR(RewriteStages(plan, {}, graph_.get()));
    return ConnectLateSources(counts, graph_.get());
  }

  std::string Op(const std::string& name) const {
    const Node* node = graph_.Find(name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  void ExpectRefused(const std::string& name, const std::string& why) const {
    const std::string error =
        ErrorOfReadingBeside(*graph_.Find(name)).value_or("(none)");
    EXPECT_THAT(error, HasSubstr("Node '" + name + "'"));
    EXPECT_THAT(error, HasSubstr("'prefetch'"));
    EXPECT_THAT(error, HasSubstr("iterator 'iterator'"));
    EXPECT_THAT(error, HasSubstr(why));
  }

  LookupGraph graph_;
  Node* iterator_;
  std::set<std::string> begun_with_;
  RecordContent content_ = RecordContent::kElements;
};

TEST_F(LateSourcesTest, EachTakesARecordOfItsOwn) {
  BeginWithOneSource();
  graph_.Neg("later_a", {graph_.GetNext("later", iterator_, 2), 1});
  graph_.GetNext("last", iterator_, 2);
  ASSERT_EQ(Rewrite(), OkStatus());
  for (const std::string name : {"later", "last"}) {
    const std::string take = "prefetch/TensorBufferTake/" + name;
    EXPECT_EQ(Op(name), "StagedNode");
    EXPECT_FALSE(IsStandIn(*graph_.Find(name)));
    EXPECT_THAT(graph_.Inputs(name), ElementsAre(take + ":1", take + ":2"));
    EXPECT_EQ(Op(take), "TensorBufferTake");
    EXPECT_THAT(graph_.Inputs(take), ElementsAre("^iterator"));
  }
  EXPECT_THAT(graph_.Inputs("later_a"), ElementsAre("later:1"));
  EXPECT_THAT(graph_.Inputs("next"),
              ElementsAre("prefetch/TensorBufferTake:1",
                          "prefetch/TensorBufferTake:2"));
  EXPECT_THAT(graph_.Inputs("target"), ElementsAre("a"));
}

TEST_F(LateSourcesTest, TheSourceOfAnotherIteratorReadsIt) {
  BeginWithOneSource();
  graph_.Source("other");
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("other"), "IteratorGetNext");
  EXPECT_FALSE(ErrorOfReadingBeside(*graph_.Find("other")));
}

TEST_F(LateSourcesTest, AnIteratorInTheStepIsReadInTheStep) {
  graph_.Target("marked", {graph_.GetNext("used", iterator_, 2)});
  graph_.GetNext("unused", iterator_, 2);
  StagesBegin();
  graph_.GetNext("later", iterator_, 2);
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("later"), "IteratorGetNext");
  EXPECT_FALSE(ErrorOfReadingBeside(*graph_.Find("later")));
}

// The op of another node may have the same iterator by its shared name.
TEST_F(LateSourcesTest, AnotherOpOfTheIteratorMakesNoDifference) {
  BeginWithOneSource();
  graph_.GetNext("later", graph_.Iterator("same", 2, "iterator"), 2);
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("later"), "StagedNode");
}

TEST_F(LateSourcesTest, InABranchTheTakeRunsIfTheBranchIsChosen) {
  BeginWithOneSource();
  NodeBuilder condition("condition", "Placeholder");
  condition.Attr("dtype", DT_BOOL);
  Node* handle =
      graph_.Switch("switch", iterator_, graph_.Finalize(&condition));
  NodeBuilder later("later", "IteratorGetNext");
  later.Input(handle, 1)
      .Attr("output_types", DataTypeVector(2, DT_INT64))
      .Attr("output_shapes",
            std::vector<PartialTensorShape>(2, TensorShape({})));
  graph_.AddControl(graph_.NoOp("before"), graph_.Finalize(&later));
  ASSERT_EQ(Rewrite(), OkStatus());
  const std::string take = "prefetch/TensorBufferTake/later";
  EXPECT_THAT(graph_.Inputs(take),
              ElementsAre("^before", "^" + take + "/input_0"));
  EXPECT_THAT(graph_.Inputs(take + "/input_0"), ElementsAre("switch:1"));
}

TEST_F(LateSourcesTest, InAChainTheElementsComeFromTheLastStage) {
  Node* table = graph_.Handle("table");
  Node* ids = graph_.Neg("ids", {graph_.GetNext("next", iterator_, 2), 0});
  Node* row = graph_.ResourceGather("row", table, ids);
  graph_.Update("update", table, ids,
                graph_.AddN("loss", {row, graph_.ReadVariable("weight")}));
  StagesBegin();
  graph_.GetNext("later", iterator_, 2);
  const NodeFilter counts(
      [this](const Node& node) { return begun_with_.count(node.name()) > 0; });
  ASSERT_EQ(RewriteStages(StagePlan(*graph_.get(), true, "", counts), {},
                          graph_.get()),
            OkStatus());
  const NodeFilter counts_after(
      [](const Node& node) { return node.name() != "later"; });
  const StaleReads stale(*graph_.get(), counts_after);
  ASSERT_EQ(
      RewriteStages(StagePlan(*graph_.get(), stale, "lookups", counts_after),
                    {}, graph_.get()),
      OkStatus());
  ASSERT_EQ(ConnectLateSources(counts, graph_.get()), OkStatus());
  EXPECT_EQ(Op("lookups/TensorBufferTake/later"), "TensorBufferTake");
  EXPECT_EQ(Op("later"), "StagedNode");
  for (const std::string& input : graph_.Inputs("later")) {
    EXPECT_THAT(input, HasSubstr("lookups/TensorBufferTake/later"));
  }
}

TEST_F(LateSourcesTest, ARecordWithTheElementsOfSeveralSourcesIsNotTaken) {
  Node* both = graph_.AddN("both", {{graph_.GetNext("next", iterator_, 2), 0},
                                    graph_.Source("other")});
  graph_.Target("target", {both});
  StagesBegin();
  graph_.GetNext("later", iterator_, 2);
  ASSERT_EQ(Rewrite(), OkStatus());
  EXPECT_EQ(Op("later"), "IteratorGetNext");
  ExpectRefused("later", "'next', 'other'");
}

TEST_F(LateSourcesTest, ElementsThatARecordDoesNotHoldAreNotTaken) {
  content_ = RecordContent::kBoundaryOnly;
  Node* next = graph_.GetNext("next", iterator_, 2);
  graph_.Target("target", {graph_.AddN("sum", {{next, 0}, {next, 1}})});
  StagesBegin();
  graph_.GetNext("later", iterator_, 2);
  ASSERT_EQ(Rewrite(), OkStatus());
  ExpectRefused("later", "carry_elements=False");
}

TEST_F(LateSourcesTest, AnotherOpDoesNotTakeTheRecords) {
  BeginWithOneSource();
  NodeBuilder later("later", "IteratorGetNextAsOptional");
  later.Input(iterator_)
      .Attr("output_types", DataTypeVector(2, DT_INT64))
      .Attr("output_shapes",
            std::vector<PartialTensorShape>(2, TensorShape({})));
  graph_.Finalize(&later);
  ASSERT_EQ(Rewrite(), OkStatus());
  ExpectRefused("later", "'next' (IteratorGetNext)");
}

TEST_F(LateSourcesTest, AManualStageDoesNotTakeTheRecords) {
  BeginWithOneSource();
  graph_.Stage("manual", {{graph_.GetNext("later", iterator_, 2), 0}});
  ASSERT_EQ(Rewrite(), OkStatus());
  ExpectRefused("later", "tf.staged");
}

TEST_F(LateSourcesTest, ANodeWithTheNameOfANewTakeIsAnError) {
  BeginWithOneSource();
  graph_.GetNext("later", iterator_, 2);
  graph_.NoOp("prefetch/TensorBufferTake/later");
  EXPECT_TRUE(errors::IsAlreadyExists(Rewrite()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
