// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// A graph in a session with two GPUs of two streams each: GPU:2 is stream 1 of
// GPU:0.
class StreamConstantsTest : public ::testing::Test {
 protected:
  static Node* On(const std::string& device, Node* node) {
    node->set_assigned_device_name("/job:localhost/replica:0/task:0/device:" +
                                   device);
    return node;
  }

  const Node* InputOf(const Node* node, int input = 0) {
    const Node* source = nullptr;
    TF_CHECK_OK(node->input_node(input, &source));
    return source;
  }

  TestGraph graph_;
};

TEST_F(StreamConstantsTest, EachStreamHasOneCopy) {
  Node* before = On("GPU:0", graph_.NoOp("before"));
  Node* constant = On("GPU:0", graph_.Const("constant", 7));
  graph_.AddControl(before, constant);
  const Node* own = On("GPU:0", graph_.Neg("own", constant));
  const Node* a = On("GPU:2", graph_.Neg("a", constant));
  const Node* b = On("GPU:2", graph_.AddN("b", {constant, constant}));
  ASSERT_EQ(CopyConstantsToStreams(/*gpus=*/2, graph_.get()), OkStatus());
  EXPECT_EQ(InputOf(own), constant);
  const Node* copy = InputOf(a);
  EXPECT_NE(copy, constant);
  EXPECT_EQ(InputOf(b, 0), copy);
  EXPECT_EQ(InputOf(b, 1), copy);
  EXPECT_THAT(copy->name(), StartsWith("constant/stream_1"));
  EXPECT_EQ(copy->assigned_device_name(), a->assigned_device_name());
  EXPECT_EQ(copy->type_string(), "Const");
  EXPECT_EQ(copy->attrs().Find("value")->tensor().SerializeAsString(),
            constant->attrs().Find("value")->tensor().SerializeAsString());
  EXPECT_THAT(InputsOf(*graph_.get(), copy->name()), ElementsAre("^before"));
}

// TensorFlow transfers them from one GPU to another, and between the host and a
// GPU.
TEST_F(StreamConstantsTest, OtherDevicesHaveNoCopies) {
  Node* constant = On("GPU:0", graph_.Const("constant", 7));
  Node* on_cpu = On("CPU:0", graph_.Const("on_cpu", 7));
  Node* computed = On("GPU:0", graph_.Neg("computed", constant));
  On("GPU:1", graph_.Neg("a", constant));
  On("GPU:3", graph_.Neg("b", constant));
  On("CPU:0", graph_.Neg("c", constant));
  On("GPU:2", graph_.AddN("d", {on_cpu, computed}));
  graph_.AddControl(constant, On("GPU:2", graph_.NoOp("waits")));
  const int nodes = graph_.get()->num_op_nodes();
  ASSERT_EQ(CopyConstantsToStreams(/*gpus=*/2, graph_.get()), OkStatus());
  EXPECT_EQ(graph_.get()->num_op_nodes(), nodes);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
