// SPDX-License-Identifier: Apache-2.0

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

using Shapes = std::vector<PartialTensorShape>;

PartialTensorShape Unknown() { return PartialTensorShape(); }

// A graph whose shapes are inferred node by node.
class TensorBufferShapeTest : public ::testing::Test {
 protected:
  TensorBufferShapeTest()
      : graph_(OpRegistry::Global()),
        refiner_(TF_GRAPH_DEF_VERSION, OpRegistry::Global()) {}

  Node* Placeholder(DataType dtype, const PartialTensorShape& shape) {
    Node* node = nullptr;
    TF_CHECK_OK(NodeBuilder(graph_.NewName("placeholder"), "Placeholder")
                    .Attr("dtype", dtype)
                    .Attr("shape", shape)
                    .Finalize(&graph_, &node));
    TF_CHECK_OK(refiner_.AddNode(node));
    return node;
  }

  Status Take(const DataTypeVector& dtypes, const Shapes& shapes) {
    TF_RETURN_IF_ERROR(NodeBuilder("take", "TensorBufferTake")
                           .Attr("dtypes", dtypes)
                           .Attr("shapes", shapes)
                           .Finalize(&graph_, &node_));
    return refiner_.AddNode(node_);
  }

  Status Close(const PartialTensorShape& code_shape,
               const PartialTensorShape& message_shape) {
    TF_RETURN_IF_ERROR(NodeBuilder("close", "TensorBufferClose")
                           .Input(Placeholder(DT_INT32, code_shape))
                           .Input(Placeholder(DT_STRING, message_shape))
                           .Finalize(&graph_, &node_));
    return refiner_.AddNode(node_);
  }

  // The shapes inferred for the outputs of the last node.
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

TEST_F(TensorBufferShapeTest, TakeHasTheGivenShapes) {
  ASSERT_EQ(Take({DT_INT64, DT_STRING, DT_FLOAT},
                 {PartialTensorShape({2, -1}), TensorShape({}), Unknown()}),
            OkStatus());
  EXPECT_EQ(OutputShapes(), (std::vector<std::string>{"[2,?]", "[]", "?"}));
}

TEST_F(TensorBufferShapeTest, TakeWithoutShapesHasUnknownShapes) {
  ASSERT_EQ(Take({DT_INT64, DT_STRING}, {}), OkStatus());
  EXPECT_EQ(OutputShapes(), (std::vector<std::string>{"?", "?"}));
}

TEST_F(TensorBufferShapeTest, TakeRejectsAnotherNumberOfShapes) {
  const Status status = Take({DT_INT64, DT_STRING}, {TensorShape({})});
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("shapes has 1 entries and dtypes has 2"),
            absl::string_view::npos)
      << status;
}

TEST_F(TensorBufferShapeTest, CloseAcceptsOnlyScalars) {
  EXPECT_EQ(Close(TensorShape({}), TensorShape({})), OkStatus());
  EXPECT_EQ(Close(Unknown(), Unknown()), OkStatus());
  EXPECT_TRUE(
      errors::IsInvalidArgument(Close(TensorShape({1}), TensorShape({}))));
  EXPECT_TRUE(
      errors::IsInvalidArgument(Close(TensorShape({}), TensorShape({2}))));
}

TEST_F(TensorBufferShapeTest, SizeIsAScalar) {
  ASSERT_EQ(NodeBuilder("size", "TensorBufferSize").Finalize(&graph_, &node_),
            OkStatus());
  ASSERT_EQ(refiner_.AddNode(node_), OkStatus());
  EXPECT_EQ(OutputShapes(), (std::vector<std::string>{"[]"}));
}

TEST_F(TensorBufferShapeTest, DiscardedIsAScalar) {
  ASSERT_EQ(
      NodeBuilder("discard", "TensorBufferDiscard").Finalize(&graph_, &node_),
      OkStatus());
  ASSERT_EQ(refiner_.AddNode(node_), OkStatus());
  EXPECT_EQ(OutputShapes(), (std::vector<std::string>{"[]"}));
}

TEST_F(TensorBufferShapeTest, StatsAreAScalar) {
  ASSERT_EQ(NodeBuilder("stats", "TensorBufferStats").Finalize(&graph_, &node_),
            OkStatus());
  ASSERT_EQ(refiner_.AddNode(node_), OkStatus());
  EXPECT_EQ(OutputShapes(), (std::vector<std::string>{"[]"}));
}

// Serialized graphs and the Python code rely on these attributes.
TEST(TensorBufferOpsTest, AllAreStatefulAndShareTheBuffersAttributes) {
  for (const char* name :
       {"TensorBufferPut", "TensorBufferTake", "TensorBufferCancel",
        "TensorBufferResume", "TensorBufferClose", "TensorBufferDiscard",
        "TensorBufferSize", "TensorBufferStats"}) {
    const OpDef* op = nullptr;
    ASSERT_EQ(OpRegistry::Global()->LookUpOpDef(name, &op), OkStatus());
    EXPECT_TRUE(op->is_stateful()) << name;
    std::vector<std::string> attrs;
    for (const OpDef::AttrDef& attr : op->attr()) attrs.push_back(attr.name());
    attrs.resize(5);
    EXPECT_EQ(attrs, (std::vector<std::string>{"container", "shared_name",
                                               "capacity", "capacity_bytes",
                                               "device_capacity_bytes"}))
        << name;
  }
}

TEST(TensorBufferOpsTest, ARecordMayBeEmpty) {
  Graph graph(OpRegistry::Global());
  EXPECT_EQ(NodeBuilder("take", "TensorBufferTake")
                .Attr("dtypes", DataTypeVector{})
                .Finalize(&graph, nullptr),
            OkStatus());
  EXPECT_EQ(NodeBuilder("put", "TensorBufferPut")
                .Input(std::vector<NodeBuilder::NodeOut>{})
                .Finalize(&graph, nullptr),
            OkStatus());
}

TEST(TensorBufferOpsTest, ACapacityBelowAutotuneIsRejected) {
  Graph graph(OpRegistry::Global());
  EXPECT_TRUE(
      errors::IsInvalidArgument(NodeBuilder("cancel", "TensorBufferCancel")
                                    .Attr("capacity", -2)
                                    .Finalize(&graph, nullptr)));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
