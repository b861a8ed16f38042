// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/record_device.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:1";
constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// A stage whose records consist of a string and two numbers, and the op that
// restores them.
class RecordDeviceTest : public ::testing::Test {
 protected:
  RecordDeviceTest() {
    std::vector<NodeBuilder::NodeOut> record;
    for (DataType dtype : {DT_FLOAT, DT_STRING, DT_INT32}) {
      NodeBuilder source(absl::StrCat("source_", record.size()), "Placeholder");
      source.Attr("dtype", dtype);
      record.push_back(graph_.Finalize(&source));
    }
    NodeBuilder put("put", kPutOp);
    put.Input(record).Attr(kSharedNameAttr, "prefetch");
    put_ = graph_.Finalize(&put);
    put_->set_assigned_device_name(kGpu);
    NodeBuilder saved("saved", "Placeholder");
    saved.Attr("dtype", DT_VARIANT);
    NodeBuilder restore("restore", kRestoreOp);
    restore.Input(graph_.Finalize(&saved))
        .Attr(kSharedNameAttr, "prefetch")
        .Attr(kStageNameAttr, "prefetch")
        .Attr(kTensorNamesAttr, std::vector<std::string>{"a", "b", "c"})
        .Attr(kDtypesAttr, DataTypeVector{DT_FLOAT, DT_STRING, DT_INT32});
    restore_ = graph_.Finalize(&restore);
    restore_->set_assigned_device_name(kCpu);
  }

  std::string Device() const {
    std::string device;
    TryGetNodeAttr(restore_->attrs(), kRecordsDeviceAttr, &device);
    return device;
  }

  std::vector<int> OnHost() const {
    std::vector<int> on_host;
    TryGetNodeAttr(restore_->attrs(), kHostTensorsAttr, &on_host);
    return on_host;
  }

  TestGraph graph_;
  Node* put_;
  Node* restore_;
};

TEST_F(RecordDeviceTest, RecordsOnACpuHaveNoDevice) {
  put_->set_assigned_device_name(kCpu);
  TF_CHECK_OK(NameDeviceOfRecords(graph_.get()));
  EXPECT_EQ(restore_->attrs().Find(kRecordsDeviceAttr), nullptr);
}

TEST_F(RecordDeviceTest, StringsAreOnTheHost) {
  TF_CHECK_OK(NameDeviceOfRecords(graph_.get()));
  EXPECT_EQ(Device(), kGpu);
  EXPECT_EQ(OnHost(), std::vector<int>{1});
  EXPECT_EQ(restore_->attrs().Find(kHandsOverAttr), nullptr);
}

TEST_F(RecordDeviceTest, WhatThePutCopiesIsOnTheDevice) {
  put_->AddAttr("_input_hostmem", std::vector<int>{0, 1, 2});
  put_->AddAttr(kCopiedInputsAttr, std::vector<int>{2});
  TF_CHECK_OK(NameDeviceOfRecords(graph_.get()));
  EXPECT_EQ(OnHost(), (std::vector<int>{0, 1}));
}

TEST_F(RecordDeviceTest, RecordsThatAreHandedOverAreMarked) {
  put_->AddAttr(kHandsOverAttr, true);
  TF_CHECK_OK(NameDeviceOfRecords(graph_.get()));
  EXPECT_NE(restore_->attrs().Find(kHandsOverAttr), nullptr);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
