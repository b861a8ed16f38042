// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StagedNodeShapeTest : public ::testing::Test {
 protected:
  StagedNodeShapeTest()
      : graph_(OpRegistry::Global()),
        refiner_(TF_GRAPH_DEF_VERSION, OpRegistry::Global()) {}

  // Adds a stand-in for a node with two outputs. Its outputs at `indices` have
  // the values of inputs of shape [2,3].
  Status Infer(const std::vector<int>& indices,
               const std::vector<PartialTensorShape>& shapes,
               int num_inputs = 1) {
    std::vector<NodeBuilder::NodeOut> carried;
    for (int i = 0; i < num_inputs; ++i) {
      Node* input = nullptr;
      TF_RETURN_IF_ERROR(NodeBuilder(graph_.NewName("input"), "Placeholder")
                             .Attr("dtype", DT_INT64)
                             .Attr("shape", TensorShape({2, 3}))
                             .Finalize(&graph_, &input));
      TF_RETURN_IF_ERROR(refiner_.AddNode(input));
      carried.emplace_back(input);
    }
    TF_RETURN_IF_ERROR(NodeBuilder(graph_.NewName("stand_in"), "StagedNode")
                           .Input(carried)
                           .Attr("dtypes", DataTypeVector{DT_INT64, DT_INT64})
                           .Attr("indices", indices)
                           .Attr("shapes", shapes)
                           .Attr("stage", "prefetch")
                           .Finalize(&graph_, &node_));
    return refiner_.AddNode(node_);
  }

  std::vector<std::string> OutputShapes() {
    std::vector<std::string> shapes;
    auto* context = refiner_.GetContext(node_);
    for (int i = 0; i < context->num_outputs(); ++i) {
      shapes.push_back(context->DebugString(context->output(i)));
    }
    return shapes;
  }

  Graph graph_;
  ShapeRefiner refiner_;
  Node* node_ = nullptr;
};

TEST_F(StagedNodeShapeTest, ACarriedValueKeepsItsShape) {
  ASSERT_EQ(Infer({1}, {}), OkStatus());
  EXPECT_THAT(OutputShapes(), ElementsAre("?", "[2,3]"));
}

TEST_F(StagedNodeShapeTest, OtherOutputsHaveTheGivenShapes) {
  ASSERT_EQ(Infer({1}, {TensorShape({5}), PartialTensorShape()}), OkStatus());
  EXPECT_THAT(OutputShapes(), ElementsAre("[5]", "[2,3]"));
}

TEST_F(StagedNodeShapeTest, EachInputNeedsOneIndex) {
  const Status status = Infer({0, 1}, {});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("indices has 2 entries and carried has 1"));
}

TEST_F(StagedNodeShapeTest, AnIndexThatIsNotOfAnOutputIsRejected) {
  for (const int index : {-1, 2}) {
    const Status status = Infer({index}, {});
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("it must be from 0 to 1"));
  }
}

// Otherwise a session would give its kernel to the node of its name that another
// run has.
TEST(StagedNodeTest, IsNotStateful) {
  const OpDef* op = nullptr;
  ASSERT_EQ(OpRegistry::Global()->LookUpOpDef("StagedNode", &op), OkStatus());
  EXPECT_FALSE(op->is_stateful());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
