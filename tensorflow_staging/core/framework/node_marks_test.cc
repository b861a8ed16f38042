// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/node_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NodeMarksTest : public ::testing::Test {
 protected:
  NodeMarksTest() : node_(graph_.Neg("node", graph_.Const("constant", 1))) {}

  Status ReadStandIn() { return ReadStandInMark(*node_, &stand_in_); }
  Status ReadClone() { return ReadCloneMark(*node_, &clone_); }

  void ExpectRefused(const Status& status, const std::string& attr,
                     const std::string& why) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("Node 'node' (Neg)"), HasSubstr(attr), HasSubstr(why)));
    EXPECT_FALSE(stand_in_.has_value());
    EXPECT_FALSE(clone_.has_value());
  }

  TestGraph graph_;
  Node* node_;
  std::optional<std::string> stand_in_;
  std::optional<CloneMark> clone_;
};

TEST_F(NodeMarksTest, ANodeWithoutMarksHasNone) {
  EXPECT_EQ(ReadStandIn(), OkStatus());
  EXPECT_FALSE(stand_in_.has_value());
  EXPECT_EQ(ReadClone(), OkStatus());
  EXPECT_FALSE(clone_.has_value());
  EXPECT_FALSE(IsStandIn(*node_));
  EXPECT_FALSE(IsClone(*node_));
  EXPECT_FALSE(CopiedNode(*node_).has_value());
}

TEST_F(NodeMarksTest, AStandInIsReadAsItWasMarked) {
  MarkStandIn("prefetch", node_);
  ASSERT_EQ(ReadStandIn(), OkStatus());
  EXPECT_EQ(stand_in_, "prefetch");
  EXPECT_TRUE(IsStandIn(*node_));
}

TEST_F(NodeMarksTest, ACloneIsReadAsItWasMarked) {
  MarkClone({"prefetch", "original", {{0, 3}, {-1, -1}}}, node_);
  ASSERT_EQ(ReadClone(), OkStatus());
  ASSERT_TRUE(clone_.has_value());
  EXPECT_EQ(clone_->stage, "prefetch");
  EXPECT_EQ(clone_->original, "original");
  ASSERT_EQ(clone_->taken_inputs.size(), 2);
  EXPECT_EQ(clone_->taken_inputs[0].input, 0);
  EXPECT_EQ(clone_->taken_inputs[0].take_output, 3);
  EXPECT_EQ(clone_->taken_inputs[1].input, Graph::kControlSlot);
  EXPECT_EQ(clone_->taken_inputs[1].take_output, Graph::kControlSlot);
  EXPECT_TRUE(IsClone(*node_));
}

TEST_F(NodeMarksTest, ACopyIsReadAsItWasMarked) {
  MarkCopy("original", node_);
  EXPECT_EQ(CopiedNode(*node_), "original");
}

TEST_F(NodeMarksTest, ACloneWithoutItsStageIsRefused) {
  node_->AddAttr(kOriginalAttr, "original");
  ExpectRefused(ReadClone(), kOriginalAttr, kMarkedStageAttr);
  node_->AddAttr(kMarkedStageAttr, 3);
  ExpectRefused(ReadClone(), kOriginalAttr, "not a string");
}

TEST_F(NodeMarksTest, AMarkOfAnotherTypeIsRefused) {
  node_->AddAttr(kStandInAttr, 7);
  ExpectRefused(ReadStandIn(), kStandInAttr, "not a string");
  node_->AddAttr(kMarkedStageAttr, "prefetch");
  node_->AddAttr(kOriginalAttr, 7);
  ExpectRefused(ReadClone(), kOriginalAttr, "not a string");
}

TEST_F(NodeMarksTest, ATakenInputThatTheNodeLacksIsRefused) {
  for (const TakenInput taken : {TakenInput{1, 0}, TakenInput{0, -1},
                                 TakenInput{-1, 0}, TakenInput{-2, -2}}) {
    for (const char* attr :
         {kMarkedStageAttr, kOriginalAttr, kTakenInputsAttr}) {
      node_->ClearAttr(attr);
    }
    MarkClone({"prefetch", "original", {taken}}, node_);
    ExpectRefused(ReadClone(), kTakenInputsAttr,
                  strings::StrCat("(", taken.input, ", ", taken.take_output));
  }
}

TEST_F(NodeMarksTest, ATakenInputWithoutItsOutputIsRefused) {
  MarkClone({"prefetch", "original", {}}, node_);
  node_->AddAttr(kTakenInputsAttr, std::vector<int>{0});
  ExpectRefused(ReadClone(), kTakenInputsAttr, "not a list of pairs");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
