// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_handover.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

std::string Device(const std::string& type, int id) {
  return absl::StrCat("/job:localhost/replica:0/task:0/device:", type, ":", id);
}

// GPU:0 and GPU:2 are streams of one GPU, GPU:1 and GPU:3 of the other.
bool AreOnSameGpu(const std::string& a, const std::string& b) {
  return (a.back() - b.back()) % 2 == 0;
}

// A stage whose records have tensors of `dtypes`. Its Puts and the Takes are on
// GPU:2, and the step uses the outputs of the Takes on GPU:0.
class StageHandoverTest : public ::testing::Test {
 protected:
  Node* On(const std::string& device, Node* node) {
    node->set_assigned_device_name(device);
    return node;
  }

  Node* AddPut(const std::string& name, const DataTypeVector& dtypes) {
    std::vector<NodeBuilder::NodeOut> record;
    for (DataType dtype : dtypes) {
      NodeBuilder source(absl::StrCat(name, "/source_", record.size()),
                         "Placeholder");
      source.Attr("dtype", dtype);
      record.push_back(On(Device("GPU", 2), graph_.Finalize(&source)));
    }
    NodeBuilder put(name, kPutOp);
    put.Input(record).Attr(kSharedNameAttr, "prefetch");
    return On(Device("GPU", 2), graph_.Finalize(&put));
  }

  Node* AddTake(const std::string& name, const DataTypeVector& dtypes) {
    NodeBuilder take(name, kTakeOp);
    take.Attr(kSharedNameAttr, "prefetch").Attr(kDtypesAttr, dtypes);
    return On(Device("GPU", 2), graph_.Finalize(&take));
  }

  Node* AddUse(const std::string& name, Node* take, int output, int gpu = 0) {
    return On(Device("GPU", gpu),
              graph_.Identity(name, NodeBuilder::NodeOut(take, output)));
  }

  void HandOver() { TF_CHECK_OK(HandOverRecords(AreOnSameGpu, graph_.get())); }

  static std::string LenderOf(const Node& take) {
    std::string lender;
    TryGetNodeAttr(take.def(), kBorrowsFromAttr, &lender);
    return lender;
  }

  static bool HandsOver(const Node& put) {
    bool hands_over = false;
    return TryGetNodeAttr(put.def(), kHandsOverAttr, &hands_over) && hands_over;
  }

  TestGraph graph_;
};

TEST_F(StageHandoverTest, TheTakeMovesToTheStreamOfTheStep) {
  const Node* put = AddPut("put", {DT_FLOAT, DT_FLOAT});
  Node* take = AddTake("take", {DT_FLOAT, DT_FLOAT});
  AddUse("use", take, 1);
  HandOver();
  EXPECT_EQ(put->assigned_device_name(), Device("GPU", 2));
  EXPECT_TRUE(HandsOver(*put));
  EXPECT_EQ(take->assigned_device_name(), Device("GPU", 0));
  EXPECT_EQ(LenderOf(*take), Device("GPU", 2));
}

TEST_F(StageHandoverTest, AStepOnTheStreamOfTheStageBorrowsNothing) {
  const Node* put = AddPut("put", {DT_FLOAT});
  Node* take = AddTake("take", {DT_FLOAT});
  AddUse("use", take, 0, /*gpu=*/2);
  HandOver();
  EXPECT_FALSE(HandsOver(*put));
  EXPECT_EQ(LenderOf(*take), "");
}

TEST_F(StageHandoverTest, AnotherGpuBorrowsNothing) {
  const Node* put = AddPut("put", {DT_FLOAT});
  Node* take = AddTake("take", {DT_FLOAT});
  AddUse("use", take, 0, /*gpu=*/1);
  HandOver();
  EXPECT_FALSE(HandsOver(*put));
  EXPECT_EQ(take->assigned_device_name(), Device("GPU", 2));
  EXPECT_EQ(LenderOf(*take), "");
}

TEST_F(StageHandoverTest, APutOnTheCpuLendsNothing) {
  Node* put = AddPut("put", {DT_FLOAT});
  On(Device("CPU", 0), put);
  Node* take = On(Device("CPU", 0), AddTake("take", {DT_FLOAT}));
  AddUse("use", take, 0);
  HandOver();
  EXPECT_FALSE(HandsOver(*put));
  EXPECT_EQ(take->assigned_device_name(), Device("CPU", 0));
}

TEST_F(StageHandoverTest, WhatThePutHasOnTheHostStaysThere) {
  Node* put = AddPut("put", {DT_FLOAT, DT_STRING, DT_FLOAT});
  put->AddAttr("_input_hostmem", std::vector<int>{2});
  Node* take = AddTake("take", {DT_FLOAT, DT_STRING, DT_FLOAT});
  AddUse("use", take, 0);
  HandOver();
  EXPECT_EQ(LenderOf(*take), Device("GPU", 2));
  std::vector<int> on_host;
  TF_CHECK_OK(GetNodeAttr(take->def(), "_output_hostmem", &on_host));
  EXPECT_EQ(on_host, (std::vector<int>{1, 2}));
}

TEST_F(StageHandoverTest, AVariantCannotBeLent) {
  const Node* put = AddPut("put", {DT_FLOAT, DT_VARIANT});
  Node* take = AddTake("take", {DT_FLOAT, DT_VARIANT});
  AddUse("use", take, 0);
  HandOver();
  EXPECT_FALSE(HandsOver(*put));
  EXPECT_EQ(take->assigned_device_name(), Device("GPU", 2));
}

TEST_F(StageHandoverTest, PutsOnTwoStreamsLendNothing) {
  const Node* put = AddPut("put", {DT_FLOAT});
  On(Device("GPU", 0), AddPut("other_put", {DT_FLOAT}));
  Node* take = AddTake("take", {DT_FLOAT});
  AddUse("use", take, 0);
  HandOver();
  EXPECT_FALSE(HandsOver(*put));
  EXPECT_EQ(take->assigned_device_name(), Device("GPU", 2));
}

// The kernels check that all of them agree on where the records are.
TEST_F(StageHandoverTest, ATakeThatStaysBorrowsTooIfAnotherMoves) {
  AddPut("put", {DT_FLOAT});
  Node* moves = AddTake("moves", {DT_FLOAT});
  AddUse("use", moves, 0);
  Node* stays = AddTake("stays", {DT_FLOAT});
  AddUse("other_use", stays, 0, /*gpu=*/2);
  HandOver();
  EXPECT_EQ(moves->assigned_device_name(), Device("GPU", 0));
  EXPECT_EQ(stays->assigned_device_name(), Device("GPU", 2));
  EXPECT_EQ(LenderOf(*moves), Device("GPU", 2));
  EXPECT_EQ(LenderOf(*stays), Device("GPU", 2));
}

TEST_F(StageHandoverTest, AStandInMovesWithItsTake) {
  AddPut("put", {DT_FLOAT});
  Node* take = AddTake("take", {DT_FLOAT});
  Node* stand_in = AddUse("stand_in", take, 0, /*gpu=*/2);
  MarkStandIn("prefetch", stand_in);
  AddUse("use", stand_in, 0);
  HandOver();
  EXPECT_EQ(take->assigned_device_name(), Device("GPU", 0));
  EXPECT_EQ(stand_in->assigned_device_name(), Device("GPU", 0));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
