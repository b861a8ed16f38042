// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/checkpoint_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
using ::testing::ElementsAre;

class CheckpointNodesTest : public ::testing::Test {
 protected:
  Node* Save(const std::string& name, Node* iterator) {
    NodeBuilder builder(name, "SerializeIterator");
    builder.Input(iterator);
    return graph_.Finalize(&builder);
  }

  // Restores the position of `iterator` from what `saved` yields.
  Node* Restore(const std::string& name, Node* iterator, Node* saved) {
    NodeBuilder builder(name, "DeserializeIterator");
    builder.Input(iterator).Input(saved);
    return graph_.Finalize(&builder);
  }

  Node* Variants(const std::string& name) {
    NodeBuilder builder(name, "Placeholder");
    builder.Attr("dtype", DT_VARIANT);
    return graph_.Finalize(&builder);
  }

  Status Rewrite(bool smart_stage) {
    const StagePlan plan(*graph_.get(), smart_stage, /*name=*/"");
    return RewriteStages(plan, RewriteOptions(), graph_.get());
  }

  template <typename T>
  T Attr(const std::string& name, const std::string& attr) const {
    T value;
    TF_CHECK_OK(GetNodeAttr(graph_.Find(name)->attrs(), attr, &value));
    return value;
  }

  std::string Op(const std::string& name) const {
    const Node* node = graph_.Find(name);
    return node == nullptr ? "(none)" : node->type_string();
  }

  TestGraph graph_;
};

TEST_F(CheckpointNodesTest, WhatASaverWritesHasTheRecords) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {graph_.Neg("a", next)});
  graph_.Identity("file", Save("save", iterator));
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());

  EXPECT_THAT(graph_.Inputs("file"), ElementsAre("save"));
  EXPECT_EQ(Op("save"), "TensorBufferSave");
  EXPECT_THAT(graph_.Inputs("save"), ElementsAre("prefetch/saved/save"));
  EXPECT_EQ(Attr<std::string>("save", "stage"), "prefetch");
  EXPECT_EQ(Attr<Strings>("save", "tensor_names"), (Strings{"a:0", "next:0"}));
  EXPECT_THAT(graph_.Inputs("prefetch/saved/save"),
              ElementsAre("iterator", "^prefetch/TensorBufferPause"));
  EXPECT_THAT(graph_.Inputs("prefetch/staged/next"),
              ElementsAre("iterator", "^prefetch/TensorBufferBegin"));
  EXPECT_EQ(Op("prefetch/TensorBufferRestart"), "(none)");
}

TEST_F(CheckpointNodesTest, ARestoreRestartsTheStageBeforeItGetsItsRecords) {
  Node* iterator = graph_.Iterator("iterator");
  Node* next = graph_.GetNext("next", iterator);
  graph_.Target("target", {graph_.Neg("a", next)});
  Node* restore = Restore("restore", iterator, Variants("saved"));
  graph_.AddControl(restore, graph_.NoOp("restore_all"));
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());

  EXPECT_THAT(graph_.Inputs("restore_all"), ElementsAre("^restore"));
  EXPECT_EQ(Op("restore"), "NoOp");
  const std::string records = "prefetch/TensorBufferRestore/restore";
  EXPECT_THAT(graph_.Inputs("restore"), ElementsAre("^" + records));
  EXPECT_THAT(graph_.Inputs(records),
              ElementsAre("saved", "^prefetch/restored/restore"));
  EXPECT_EQ(Attr<DataTypeVector>(records, "dtypes"),
            (DataTypeVector{DT_INT64, DT_INT64}));
  const std::string position = "prefetch/StagedIteratorPosition/restore";
  EXPECT_THAT(
      graph_.Inputs("prefetch/restored/restore"),
      ElementsAre("iterator", position, "^prefetch/TensorBufferRestart"));
  EXPECT_THAT(graph_.Inputs(position), ElementsAre("saved"));
  EXPECT_EQ(Attr<Strings>(position, "stages"), Strings{"prefetch"});
}

// The later stage pauses and restarts first: it may wait for a record of the
// stage before it.
TEST_F(CheckpointNodesTest, TheStagesOfAChainAreSavedTogether) {
  Node* iterator = graph_.Iterator("iterator");
  Node* first = graph_.Stage("first", {graph_.GetNext("next", iterator)});
  Node* second = graph_.Stage("second", {graph_.Neg("a", first)});
  graph_.Target("target", {second});
  graph_.Identity("file", Save("save", iterator));
  Restore("restore", iterator, Variants("saved"));
  ASSERT_EQ(Rewrite(/*smart_stage=*/false), OkStatus());

  EXPECT_THAT(graph_.Inputs("first/TensorBufferPause"),
              ElementsAre("^second/TensorBufferPause"));
  EXPECT_THAT(graph_.Inputs("first/TensorBufferRestart"),
              ElementsAre("^second/TensorBufferRestart"));
  EXPECT_THAT(graph_.Inputs("first/saved/save"),
              ElementsAre("iterator", "^first/TensorBufferPause",
                          "^second/TensorBufferPause"));
  EXPECT_THAT(graph_.Inputs("file"), ElementsAre("save"));
  EXPECT_EQ(Attr<std::string>("save", "stage"), "second");
  EXPECT_THAT(graph_.Inputs("save"),
              ElementsAre("first/TensorBufferSave/save"));
  EXPECT_EQ(Attr<Strings>("first/TensorBufferSave/save", "tensor_names"),
            Strings{"next:0"});
  EXPECT_THAT(graph_.Inputs("restore"),
              ElementsAre("^first/TensorBufferRestore/restore",
                          "^second/TensorBufferRestore/restore"));
  EXPECT_EQ(Attr<Strings>("first/StagedIteratorPosition/restore", "stages"),
            (Strings{"first", "second"}));
}

// Each saver sees the stage at rest; the records are saved once, with the
// iterator whose name comes first.
TEST_F(CheckpointNodesTest, AStageOfTwoIteratorsIsSavedWithTheFirst) {
  Node* a = graph_.Iterator("a_iterator");
  Node* b = graph_.Iterator("b_iterator");
  Node* both =
      graph_.AddN("both", {graph_.GetNext("b", b), graph_.GetNext("a", a)});
  graph_.Target("target", {both});
  Save("save_b", b);
  Save("save_a", a);
  ASSERT_EQ(Rewrite(/*smart_stage=*/true), OkStatus());
  EXPECT_EQ(Op("save_a"), "TensorBufferSave");
  EXPECT_EQ(Op("save_b"), "SerializeIterator");
  EXPECT_THAT(graph_.Inputs("save_b"),
              ElementsAre("b_iterator", "^prefetch/TensorBufferPause"));
}

TEST_F(CheckpointNodesTest, ASaverOfAnUnstagedIteratorStaysAsItIs) {
  Node* iterator = graph_.Iterator("iterator");
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  Save("save", iterator);
  Restore("restore", iterator, Variants("saved"));
  ASSERT_EQ(Rewrite(/*smart_stage=*/false), OkStatus());
  EXPECT_EQ(Op("save"), "SerializeIterator");
  EXPECT_THAT(graph_.Inputs("save"), ElementsAre("iterator"));
  EXPECT_THAT(graph_.Inputs("restore"), ElementsAre("iterator", "saved"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
