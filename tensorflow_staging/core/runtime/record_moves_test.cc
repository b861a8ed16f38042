// SPDX-License-Identifier: Apache-2.0

#include "gtest/gtest.h"
#include "tensorflow_staging/core/runtime/region_ops.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(RecordMovesTest, FromAnIteratorThroughIdentitiesToABuffer) {
  TestGraph graph;
  graph.Put("put", "stage",
            {graph.Identity("identity", graph.Source("next")),
             graph.Const("constant", 1)});
  EXPECT_TRUE(OnlyMovesRecords(*graph.get()));
}

TEST(RecordMovesTest, FromBufferToBuffer) {
  TestGraph graph;
  graph.Put("put", "second", {graph.Take("first")});
  EXPECT_TRUE(OnlyMovesRecords(*graph.get()));
}

TEST(RecordMovesTest, AnOpThatComputes) {
  TestGraph graph;
  graph.Put("put", "stage", {graph.Neg("neg", graph.Source("next"))});
  EXPECT_FALSE(OnlyMovesRecords(*graph.get()));
}

// For example the transfer from another device.
TEST(RecordMovesTest, AnOpThatIsNotKnown) {
  TestGraph graph;
  graph.Put("put", "stage", {graph.Source("next")});
  graph.Lone("python", "PyFunc");
  EXPECT_FALSE(OnlyMovesRecords(*graph.get()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
