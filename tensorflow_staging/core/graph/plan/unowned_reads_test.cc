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

TEST_F(UnownedReadsTest, ARemoteCallReadsTheIteratorsBehindIt) {
  NodeBuilder builder("remote", "RemoteCall");
  NameAttrList f;
  f.set_name("next");
  AttrValue string_type;
  string_type.set_type(DT_STRING);
  builder.Input(graph_.Lone("target", "Placeholder", {{"dtype", string_type}}))
      .Input(std::vector<NodeBuilder::NodeOut>{graph_.Iterator("iterator")})
      .Attr("Tin", {DT_RESOURCE})
      .Attr("Tout", {DT_INT64})
      .Attr("f", f);
  graph_.Stage("stage", {graph_.Finalize(&builder)});
  const std::vector<UnownedRead> reads = Find();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].reason, Reason::kRemoteCall);
  EXPECT_EQ(reads[0].iterator->name(), "iterator");
  EXPECT_EQ(reads[0].reader->name(), "remote");
}

TEST_F(UnownedReadsTest, EagerPythonIsFoundInFunctions) {
  // A function that runs eager code.
  FunctionDef function =
      FunctionDefHelper::Create("eager", {"x: int64"}, {"y: int64"}, {},
                                {{{"call"},
                                  "EagerPyFunc",
                                  {"x"},
                                  {{"token", "t"},
                                   {"Tin", DataTypeVector{DT_INT64}},
                                   {"Tout", DataTypeVector{DT_INT64}}}}},
                                {{"y", "call:output:0"}});
  TF_CHECK_OK(graph_.get()->mutable_flib_def()->AddFunctionDef(function));
  Node* next = graph_.Source("next");
  NodeBuilder builder("call", "PartitionedCall");
  NameAttrList f;
  f.set_name("eager");
  builder.Input(std::vector<NodeBuilder::NodeOut>{next})
      .Attr("Tin", {DT_INT64})
      .Attr("Tout", {DT_INT64})
      .Attr("f", f);
  graph_.Stage("stage", {graph_.Finalize(&builder)});
  const std::vector<UnownedRead> reads = Find();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].reason, Reason::kEagerPython);
  EXPECT_EQ(reads[0].iterator, nullptr);
  EXPECT_EQ(reads[0].reader->name(), "call");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
