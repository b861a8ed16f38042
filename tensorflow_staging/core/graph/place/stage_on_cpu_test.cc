// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"

#include <gtest/gtest.h>

#include <string>

#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(StageOnCpuTest, CopiesAChainOfAnyLengthOnce) {
  constexpr int kNodes = 100000;
  TestGraph graph;
  Node* last = graph.Const("constant", 1);
  for (int i = 0; i < kNodes; ++i) {
    last = graph.Neg(strings::StrCat("neg_", i), last);
  }
  const int before = graph.get()->num_op_nodes();
  CpuCopies copies;
  Node* copy = nullptr;
  ASSERT_EQ(CopyToCpu(last, "stage", graph.get(), &copies, &copy), OkStatus());
  EXPECT_EQ(graph.get()->num_op_nodes(), before + kNodes + 1);
  int length = 0;
  for (const Node* node = copy; node->type_string() == "Neg"; ++length) {
    ASSERT_EQ(node->requested_device(), "/device:CPU:0");
    ASSERT_EQ(node->in_edges().size(), 1);
    node = (*node->in_edges().begin())->src();
  }
  EXPECT_EQ(length, kNodes);

  Node* again = nullptr;
  ASSERT_EQ(CopyToCpu(last, "stage", graph.get(), &copies, &again), OkStatus());
  EXPECT_EQ(again, copy);
}

TEST(StageOnCpuTest, ANodeThatUsesAResourceIsNotCopied) {
  TestGraph graph;
  Node* read = graph.ReadVariable("variable");
  Node* sum = graph.AddN("sum", {read, graph.Const("constant", 1)});
  CpuCopies copies;
  Node* copy = nullptr;
  ASSERT_EQ(CopyToCpu(sum, "stage", graph.get(), &copies, &copy), OkStatus());
  EXPECT_EQ(copy->name(), "stage/sum");
  EXPECT_EQ(InputsOf(*graph.get(), "stage/sum"),
            (std::vector<std::string>{read->name(), "stage/constant"}));
}

TEST(StageOnCpuTest, ADeviceOrAStreamAsksForAnAccelerator) {
  TestGraph graph;
  Node* node = graph.Const("constant", 1);
  EXPECT_TRUE(AskForNoAccelerator({node}));
  for (const char* device : {"/cpu:0", "/device:CPU:0", "/job:worker/task:1"}) {
    node->set_requested_device(device);
    EXPECT_TRUE(AskForNoAccelerator({node})) << device;
  }
  for (const char* device : {"/gpu:0", "/job:worker/device:GPU:1"}) {
    node->set_requested_device(device);
    EXPECT_FALSE(AskForNoAccelerator({node})) << device;
  }
  Node* in_stream = graph.Const("in_stream", 1);
  in_stream->AddAttr(kStreamAttr, 0);
  EXPECT_TRUE(AskForNoAccelerator({in_stream}));
  in_stream->ClearAttr(kStreamAttr);
  in_stream->AddAttr(kStreamAttr, 1);
  EXPECT_FALSE(AskForNoAccelerator({in_stream}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
