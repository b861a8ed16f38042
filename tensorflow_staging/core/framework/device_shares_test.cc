// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/device_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu1[] = "/job:localhost/replica:0/task:0/device:GPU:1";
constexpr char kGpu2[] = "/job:localhost/replica:0/task:0/device:GPU:2";

TEST(DeviceSharesTest, WhatIsWrittenIsRead) {
  TestGraph graph;
  NodeBuilder builder("node", "NoOp");
  Node* const node = graph.Finalize(&builder);
  std::vector<DeviceShare> shares = {{kGpu2, {5}}};
  EXPECT_FALSE(HasShares(node->def()));
  EXPECT_EQ(ReadShares(node->def(), 6, &shares), OkStatus());
  EXPECT_TRUE(shares.empty());
  WriteShares({}, node);
  EXPECT_FALSE(HasShares(node->def()));

  WriteShares({{kGpu1, {0, 2}}, {kGpu2, {2}}}, node);
  EXPECT_TRUE(HasShares(node->def()));
  ASSERT_EQ(ReadShares(node->def(), 3, &shares), OkStatus());
  ASSERT_EQ(shares.size(), 2);
  EXPECT_EQ(shares[0].device, kGpu1);
  EXPECT_EQ(shares[0].tensors, (std::vector<int>{0, 2}));
  EXPECT_EQ(shares[1].device, kGpu2);
  EXPECT_EQ(shares[1].tensors, (std::vector<int>{2}));
}

Status Read(const std::vector<std::string>& devices,
            const std::vector<int>& tensors) {
  NodeDef node;
  node.set_name("node");
  AddNodeAttr(kShareDevicesAttr, devices, &node);
  AddNodeAttr(kShareTensorsAttr, tensors, &node);
  std::vector<DeviceShare> shares;
  return ReadShares(node, /*num_tensors=*/3, &shares);
}

TEST(DeviceSharesTest, WrongAttributesAreRefused) {
  EXPECT_EQ(Read({kGpu1, kGpu1}, {0, 1}), OkStatus());
  const auto expect = [](const Status& status, const std::string& text) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  expect(Read({kGpu1}, {0, 1}), "has 1 entries and");
  expect(Read({"nowhere"}, {0}), "'nowhere', which is no full name");
  expect(Read({"/job:localhost/replica:0/task:0/device:CPU:0"}, {0}),
         "which is no full name of an accelerator");
  expect(Read({kGpu1}, {3}), "contains 3; it must contain");
  expect(Read({kGpu1}, {-1}), "contains -1; it must contain");
  expect(Read({kGpu1, kGpu1}, {1, 1}), "in ascending order");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
