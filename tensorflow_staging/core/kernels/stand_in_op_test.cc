// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

// A session over
//
//   x (7) --> stand_in:1
//
// where stand_in has three outputs.
class StagedNodeOpTest : public ::testing::Test {
 protected:
  StagedNodeOpTest() : session_(NewSession(SessionOptions())) {
    GraphDef graph;
    const Tensor value(int64_t{7});
    TF_CHECK_OK(NodeDefBuilder("x", "Const")
                    .Attr("dtype", DT_INT64)
                    .Attr("value", value)
                    .Finalize(graph.add_node()));
    TF_CHECK_OK(
        NodeDefBuilder("stand_in", "StagedNode")
            .Input(std::vector<NodeDefBuilder::NodeOut>{{"x", 0, DT_INT64}})
            .Attr("dtypes", DataTypeVector{DT_STRING, DT_INT64, DT_FLOAT})
            .Attr("indices", std::vector<int>{1})
            .Attr("stage", "prefetch")
            .Finalize(graph.add_node()));
    TF_CHECK_OK(NodeDefBuilder("after", "NoOp")
                    .ControlInput("stand_in")
                    .Finalize(graph.add_node()));
    TF_CHECK_OK(session_->Create(graph));
  }

  ~StagedNodeOpTest() override { TF_CHECK_OK(session_->Close()); }

  Status Fetch(const std::vector<std::string>& tensors,
               const std::vector<std::string>& targets = {}) {
    return session_->Run({}, tensors, targets, &outputs_);
  }

  const std::unique_ptr<Session> session_;
  std::vector<Tensor> outputs_;
};

TEST_F(StagedNodeOpTest, PassesCarriedValuesOn) {
  ASSERT_EQ(Fetch({"stand_in:1"}), OkStatus());
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), 7);
}

TEST_F(StagedNodeOpTest, TheErrorNamesTheTensorThatIsNotCarriedAndTheRemedy) {
  for (const char* tensor : {"stand_in:0", "stand_in:2"}) {
    const Status status = Fetch({tensor, "stand_in:1"});
    EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(strings::StrCat("'", tensor, "'")));
    EXPECT_THAT(message, HasSubstr("stage 'prefetch'"));
    EXPECT_THAT(message,
                HasSubstr("tf.train.mark_target_node([tf.identity(x)])"));
  }
}

TEST_F(StagedNodeOpTest, RunningItOrWaitingForItNeedsNoOutput) {
  EXPECT_EQ(Fetch({}, {"stand_in"}), OkStatus());
  EXPECT_EQ(Fetch({}, {"after"}), OkStatus());
  EXPECT_EQ(Fetch({"stand_in:1"}, {"stand_in", "after"}), OkStatus());
}

// Creates the kernel of a node with int64 inputs, as an eager run does.
Status CreateKernel(const std::vector<int>& indices, int inputs = 1) {
  const std::unique_ptr<Device> device = DeviceFactory::NewDevice(
      "CPU", SessionOptions(), "/job:localhost/replica:0/task:0");
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("stand_in", "StagedNode")
                  .Input(std::vector<NodeDefBuilder::NodeOut>(
                      inputs, {"x", 0, DT_INT64}))
                  .Attr("dtypes", DataTypeVector{DT_STRING, DT_INT64})
                  .Attr("indices", indices)
                  .Attr("stage", "prefetch")
                  .Finalize(&node));
  Status status;
  CreateOpKernel(DEVICE_CPU, device.get(), device->GetAllocator({}), node,
                 TF_GRAPH_DEF_VERSION, &status);
  return status;
}

TEST(StagedNodeKernelTest, IndicesThatFitNoOutputAreRejected) {
  EXPECT_EQ(CreateKernel({1}), OkStatus());
  for (const auto& [indices, reason] :
       std::vector<std::pair<std::vector<int>, std::string>>{
           {{100000000}, "indices[0] is 100000000; it must be from 0 to 1"},
           {{-1}, "indices[0] is -1; it must be from 0 to 1"},
           {{}, "indices has 0 entries and carried has 1"},
           {{0}, "carried[0] is int64, but output 0 is string"}}) {
    const Status status = CreateKernel(indices);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  }
  const Status twice = CreateKernel({1, 1}, /*inputs=*/2);
  EXPECT_TRUE(errors::IsInvalidArgument(twice)) << twice;
  EXPECT_THAT(std::string(twice.message()), HasSubstr("has 1 more than once"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
