// SPDX-License-Identifier: Apache-2.0
//
// Tests what several accelerators of a step get of a record, from placement
// (stage_delivery.h) to the graph of a run.

#include "tensorflow_staging/core/graph/place/give_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"
#include "tensorflow_staging/core/graph/place/stage_delivery.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

std::string On(const std::string& type, int id) {
  return absl::StrCat("/job:localhost/replica:0/task:0/device:", type, ":", id);
}

// A stage with records of three tensors, on the CPU.
class GiveSharesTest : public ::testing::Test {
 protected:
  GiveSharesTest() {
    std::vector<NodeBuilder::NodeOut> record;
    for (int i = 0; i < 3; ++i) {
      record.push_back(
          Place(graph_.Placeholder(absl::StrCat("source_", i)), On("CPU", 0)));
    }
    put_ = Place(graph_.Put("put", "prefetch", record), On("CPU", 0));
    put_->AddAttr(kDeliversAttr, true);
    take_ = Place(graph_.Take("prefetch", 3), On("CPU", 0));
  }

  static Node* Place(Node* node, const std::string& device) {
    node->set_assigned_device_name(device);
    return node;
  }

  // Adds a node on a GPU that uses an output of the Take.
  Node* AddUse(const std::string& name, int output, int gpu) {
    return Place(graph_.Identity(name, {take_, output}), On("GPU", gpu));
  }

  // Adds a node on the CPU that does.
  Node* AddUseOnHost(const std::string& name, int output) {
    return Place(graph_.Identity(name, {take_, output}), On("CPU", 0));
  }

  void PlaceAndGive(bool is_function = false) {
    TF_CHECK_OK(PlaceRecords(&places_, graph_.get()));
    TF_CHECK_OK(GiveShares(is_function, graph_.get()));
  }

  // The shares that the attributes of a node have, as text.
  static std::string SharesOf(const Node& node) {
    std::vector<DeviceShare> shares;
    TF_CHECK_OK(ReadShares(node.def(), 3, &shares));
    std::string text;
    for (const DeviceShare& share : shares) {
      absl::StrAppend(&text, share.device.substr(share.device.size() - 5), "[");
      for (const int tensor : share.tensors) absl::StrAppend(&text, tensor);
      absl::StrAppend(&text, "]");
    }
    return text;
  }

  static std::vector<int> IndicesIn(const Node& node, const char* attr) {
    std::vector<int> indices;
    TF_CHECK_OK(GetNodeAttr(node.attrs(), attr, &indices));
    return indices;
  }

  std::vector<const Node*> NodesOf(const char* op) {
    std::vector<const Node*> nodes;
    for (const Node* node : graph_.get()->op_nodes()) {
      if (node->type_string() == op) nodes.push_back(node);
    }
    return nodes;
  }

  TestGraph graph_;
  Node* put_;
  Node* take_;
  PlacesOfStages places_;
};

TEST_F(GiveSharesTest, OneGpuHasNoShare) {
  AddUse("a", 0, 0);
  AddUse("b", 2, 0);
  AddUseOnHost("c", 1);
  PlaceAndGive();
  EXPECT_EQ(take_->assigned_device_name(), On("GPU", 0));
  EXPECT_FALSE(HasShares(put_->def()));
  EXPECT_FALSE(HasShares(take_->def()));
  EXPECT_EQ(IndicesIn(*put_, kCopiedInputsAttr), (std::vector<int>{0, 2}));
  EXPECT_EQ(IndicesIn(*take_, kOutputHostMemoryAttr), (std::vector<int>{1}));
  EXPECT_TRUE(NodesOf(kShareOp).empty());
}

TEST_F(GiveSharesTest, EachFurtherGpuGetsAllThatItUses) {
  AddUse("a", 0, 0);
  AddUse("common_a", 2, 0);
  AddUse("b", 1, 1);
  AddUse("common_b", 2, 1);
  AddUse("common_c", 2, 3);
  PlaceAndGive();
  EXPECT_EQ(put_->assigned_device_name(), On("GPU", 0));
  EXPECT_EQ(SharesOf(*put_), "GPU:1[12]GPU:3[2]");
  EXPECT_EQ(IndicesIn(*put_, kCopiedInputsAttr), (std::vector<int>{0, 2}));

  const std::vector<const Node*> takes = NodesOf(kTakeOp);
  ASSERT_EQ(takes.size(), 1);
  const Node& take = *takes[0];
  EXPECT_EQ(take.assigned_device_name(), On("GPU", 0));
  EXPECT_EQ(take.num_outputs(), 4);
  EXPECT_EQ(SharesOf(take), "GPU:1[12]GPU:3[2]");
  EXPECT_EQ(IndicesIn(take, kOutputHostMemoryAttr), (std::vector<int>{1, 3}));
  EXPECT_EQ(graph_.Inputs("a"), (std::vector<std::string>{take.name()}));
  EXPECT_EQ(graph_.Inputs("common_a"),
            (std::vector<std::string>{take.name() + ":2"}));

  const std::vector<const Node*> shares = NodesOf(kShareOp);
  ASSERT_EQ(shares.size(), 2);
  for (const Node* share : shares) {
    EXPECT_EQ(graph_.Inputs(share->name()),
              (std::vector<std::string>{take.name() + ":3"}));
  }
  EXPECT_EQ(shares[0]->assigned_device_name(), On("GPU", 1));
  EXPECT_EQ(IndicesIn(*shares[0], kIndicesAttr), (std::vector<int>{1, 2}));
  EXPECT_EQ(graph_.Inputs("b"), (std::vector<std::string>{shares[0]->name()}));
  EXPECT_EQ(graph_.Inputs("common_b"),
            (std::vector<std::string>{shares[0]->name() + ":1"}));
  EXPECT_EQ(shares[1]->assigned_device_name(), On("GPU", 3));
  EXPECT_EQ(graph_.Inputs("common_c"),
            (std::vector<std::string>{shares[1]->name()}));
}

TEST_F(GiveSharesTest, WhatTheHostUsesIsThereAsWell) {
  AddUse("a", 0, 0);
  AddUse("b", 1, 1);
  AddUseOnHost("c", 1);
  PlaceAndGive();
  const Node& take = *NodesOf(kTakeOp).front();
  EXPECT_EQ(IndicesIn(take, kOutputHostMemoryAttr),
            (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(graph_.Inputs("c"), (std::vector<std::string>{take.name() + ":1"}));
}

// TensorFlow copies it to the others, in the step.
TEST_F(GiveSharesTest, WhatIsComputedOnAGpuIsNoShare) {
  Node* const source = Place(graph_.Placeholder("computed"), On("CPU", 0));
  Node* const computed = Place(graph_.Identity("on_gpu", source), On("GPU", 0));
  TF_CHECK_OK(graph_.get()->UpdateEdge(computed, 0, put_, 1));
  AddUse("a", 0, 0);
  AddUse("b", 1, 1);
  AddUse("c", 2, 1);
  AddUse("d", 0, 0);
  PlaceAndGive();
  EXPECT_EQ(SharesOf(*put_), "GPU:1[2]");
  const Node& take = *NodesOf(kTakeOp).front();
  EXPECT_EQ(graph_.Inputs("b"), (std::vector<std::string>{take.name() + ":1"}));
  EXPECT_EQ(IndicesIn(take, kOutputHostMemoryAttr), (std::vector<int>{2, 3}));
}

// What feeds the stand-in would not reach those who use the share, so the pass is
// for graphs in which all that is fed has its place.
TEST_F(GiveSharesTest, AStandInIsForTheGpuOfTheTake) {
  Node* const stand_in = AddUseOnHost("stand_in", 0);
  MarkStandIn("prefetch", stand_in);
  Place(graph_.Identity("a", {stand_in, 0}), On("GPU", 0));
  Place(graph_.Identity("b", {stand_in, 0}), On("GPU", 1));
  Node* const unused = AddUseOnHost("unused", 1);
  MarkStandIn("prefetch", unused);
  Place(graph_.Identity("c", {unused, 0}), On("GPU", 1));
  AddUse("d", 2, 0);
  PlaceAndGive();
  EXPECT_EQ(stand_in->assigned_device_name(), On("GPU", 0));
  EXPECT_EQ(graph_.Inputs("a"), (std::vector<std::string>{"stand_in"}));
  const Node& share = *NodesOf(kShareOp).front();
  EXPECT_EQ(graph_.Inputs("b"), (std::vector<std::string>{share.name()}));
  EXPECT_EQ(graph_.Inputs("c"),
            (std::vector<std::string>{share.name() + ":1"}));
  EXPECT_EQ(graph_.Find("unused"), nullptr);
}

// A session keeps kernels by name, and a function what it must run.
TEST_F(GiveSharesTest, ATakeKeepsItsNameInAFunction) {
  AddUse("a", 0, 0);
  AddUse("b", 1, 1);
  TF_CHECK_OK(PlaceRecords(&places_, graph_.get()));
  TF_CHECK_OK(GiveShares(/*is_function=*/true, graph_.get()));
  EXPECT_EQ(NodesOf(kTakeOp).front()->name(), "prefetch/TensorBufferTake");
}

TEST_F(GiveSharesTest, ATakeWithoutSharesKeepsItsNameInASession) {
  AddUse("a", 0, 0);
  Node* const b = AddUse("b", 1, 1);
  TF_CHECK_OK(PlaceRecords(&places_, graph_.get()));
  // As in a run without the node.
  graph_.get()->RemoveNode(b);
  TF_CHECK_OK(GiveShares(/*is_function=*/false, graph_.get()));
  const Node& take = *NodesOf(kTakeOp).front();
  EXPECT_EQ(take.name(), "prefetch/TensorBufferTake");
  EXPECT_EQ(take.num_outputs(), 3);
  EXPECT_EQ(SharesOf(take), "GPU:1[1]");
}

// The kernels of a stage that runs know where its records are.
TEST_F(GiveSharesTest, RecordsOfAStageThatRunsStayWhereTheyAre) {
  places_[{"", "prefetch"}] = {On("GPU", 2), {0}, {{On("GPU", 1), {1}}}};
  AddUse("a", 0, 0);
  AddUse("b", 1, 1);
  AddUse("c", 2, 1);
  PlaceAndGive();
  EXPECT_EQ(put_->assigned_device_name(), On("GPU", 2));
  EXPECT_EQ(SharesOf(*put_), "GPU:1[1]");
  const Node& take = *NodesOf(kTakeOp).front();
  EXPECT_EQ(take.assigned_device_name(), On("GPU", 2));
  EXPECT_EQ(IndicesIn(take, kOutputHostMemoryAttr),
            (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(graph_.Inputs("c"), (std::vector<std::string>{take.name() + ":2"}));
}

TEST_F(GiveSharesTest, WrongAttributesAreRefused) {
  AddUse("a", 0, 0);
  WriteShares({{On("GPU", 1), {7}}}, take_);
  const Status status = GiveShares(/*is_function=*/false, graph_.get());
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "contains 7")) << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
