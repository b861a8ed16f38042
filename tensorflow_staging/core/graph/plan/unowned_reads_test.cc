// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/unowned_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Reason = UnownedRead::Reason;

constexpr char kHere[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kElsewhere[] = "/job:worker/replica:0/task:1/device:CPU:0";

class UnownedReadsTest : public ::testing::Test {
 protected:
  std::vector<UnownedRead> Find() {
    for (Node* node : graph_.get()->op_nodes()) {
      if (node->assigned_device_name().empty()) {
        node->set_assigned_device_name(kHere);
      }
    }
    const StagePlan plan(*graph_.get(), /*smart_stage=*/false, /*name=*/"");
    return FindUnownedReads(*graph_.get(), plan).at(0);
  }

  // A node of the op `op`, or a call of a function.
  Node* Call(const std::string& name, const std::string& op,
             const std::string& function, Node* input) {
    NodeBuilder builder(name, op);
    if (op == "RemoteCall") builder.Input(graph_.Const(name + "/target", 0));
    NameAttrList f;
    f.set_name(function);
    builder.Input(std::vector<NodeBuilder::NodeOut>{input})
        .Attr("Tin", {input->output_type(0)})
        .Attr("Tout", {DT_INT64})
        .Attr("f", f);
    return graph_.Finalize(&builder);
  }

  TestGraph graph_;
};

TEST_F(UnownedReadsTest, IteratorsOfTheSameProcessAreOwned) {
  graph_.Stage("stage", {graph_.Source("next")});
  EXPECT_TRUE(Find().empty());
}

TEST_F(UnownedReadsTest, AnotherDeviceOfTheProcessIsNotAnotherProcess) {
  Node* iterator = graph_.Iterator("iterator");
  iterator->set_assigned_device_name(
      "/job:worker/replica:0/task:0/device:GPU:0");
  graph_.Stage("stage", {graph_.GetNext("next", iterator)});
  EXPECT_TRUE(Find().empty());
}

TEST_F(UnownedReadsTest, AnIteratorOfAnotherProcessIsNot) {
  Node* iterator = graph_.Iterator("iterator");
  iterator->set_assigned_device_name(kElsewhere);
  graph_.Stage("stage", {graph_.GetNext("next", iterator)});
  const std::vector<UnownedRead> reads = Find();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].reason, Reason::kOtherProcess);
  EXPECT_EQ(reads[0].iterator->name(), "iterator");
}

TEST_F(UnownedReadsTest, WhatTheStepReadsDoesNotCount) {
  Node* iterator = graph_.Iterator("iterator");
  iterator->set_assigned_device_name(kElsewhere);
  graph_.GetNext("beside", iterator);
  graph_.Stage("stage", {graph_.Source("next")});
  EXPECT_TRUE(Find().empty());
}

TEST_F(UnownedReadsTest, EagerPythonIsFoundInFunctions) {
  // A function that runs eager code.
  FunctionDef function = FunctionDefHelper::Create(
      "eager", {"x: int64"}, {"y: int64"}, {},
      {{{"call"},
        "EagerPyFunc",
        {"x"},
        {{"token", "t"},
         {"Tin", DataTypeVector{DT_INT64}},
         {"Tout", DataTypeVector{DT_INT64}}}}},
      {{"y", "call:output:0"}});
  TF_CHECK_OK(graph_.get()->mutable_flib_def()->AddFunctionDef(function));
  Node* next = graph_.Source("next");
  graph_.Stage("stage", {Call("call", "PartitionedCall", "eager", next)});
  const std::vector<UnownedRead> reads = Find();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].reason, Reason::kEagerPython);
  EXPECT_EQ(reads[0].iterator, nullptr);
  EXPECT_EQ(reads[0].reader->name(), "call");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
