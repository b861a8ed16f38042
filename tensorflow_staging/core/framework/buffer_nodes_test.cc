// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/buffer_nodes.h"

#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(BufferNodesTest, EveryOpOfTheVocabularyIsRegistered) {
  for (const char* name : kBufferOps) {
    const OpDef* op = nullptr;
    ASSERT_EQ(OpRegistry::Global()->LookUpOpDef(name, &op), OkStatus());
    for (const char* attr :
         {kContainerAttr, kSharedNameAttr, kCapacityAttr, kCapacityBytesAttr}) {
      EXPECT_NE(FindAttr(attr, *op), nullptr) << name << " lacks " << attr;
    }
  }
  const OpDef* op = nullptr;
  EXPECT_EQ(OpRegistry::Global()->LookUpOpDef(kStagedNodeOp, &op), OkStatus());
}

TEST(BufferNodesTest, EachPredicateRecognisesItsOp) {
  TestGraph graph;
  const Node* take = graph.Stage("stage", {graph.Const("value", 1)});
  const Node* put = graph.Find("stage/TensorBufferPut");
  EXPECT_TRUE(IsBufferOp(*take) && IsBufferTake(*take) && !IsBufferPut(*take));
  EXPECT_TRUE(IsBufferOp(*put) && IsBufferPut(*put) && !IsBufferTake(*put));
  EXPECT_FALSE(IsBufferOp(*graph.Find("value")));
}

TEST(BufferNodesTest, TheOpsOfAStageHaveOneBuffer) {
  TestGraph graph;
  const Node* take = graph.Stage("stage", {graph.Const("value", 1)});
  const auto key = BufferOf(*take);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->name, "stage");
  EXPECT_EQ(BufferOf(*graph.Find("stage/TensorBufferPut")), key);
  EXPECT_FALSE(BufferOf(*graph.Find("value")).has_value());
}

TEST(BufferNodesTest, ANodeThatNamesNoBufferHasNone) {
  TestGraph graph;
  Node* take = graph.Stage("stage", {graph.Const("value", 1)});
  take->ClearAttr(kSharedNameAttr);
  EXPECT_FALSE(BufferOf(*take).has_value());
  take->AddAttr(kSharedNameAttr, 3);
  EXPECT_FALSE(BufferOf(*take).has_value());
  take->ClearAttr(kSharedNameAttr);
  take->AddAttr(kSharedNameAttr, "");
  EXPECT_FALSE(BufferOf(*take).has_value());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
