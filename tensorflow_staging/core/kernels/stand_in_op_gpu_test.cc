// SPDX-License-Identifier: Apache-2.0
//
// Tests StagedNode on a fake GPU: its users find each value in the
// memory where they look for it. That includes 32-bit integers, which most
// TensorFlow kernels keep on the host.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kCpu[] = "/device:CPU:0";
constexpr char kGpu[] = "/device:GPU:0";

// Runs only on the GPU, with its input and output in host memory.
class TenfoldOnHostOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &y));
    y->scalar<int32>()() = 10 * ctx->input(0).scalar<int32>()();
  }
};

REGISTER_OP("StagingTestTenfoldOnHost")
    .Input("x: int32")
    .Output("y: int32")
    .SetShapeFn(shape_inference::UnchangedShape);
REGISTER_KERNEL_BUILDER(Name("StagingTestTenfoldOnHost")
                            .Device(DEVICE_GPU)
                            .HostMemory("x")
                            .HostMemory("y"),
                        TenfoldOnHostOp);

// A session over
//
//   text --> stand_in:0
//   number --> stand_in:1 --> there
//                         --> on_host
//
// with every node except the constants on the GPU.
std::unique_ptr<Session> NewTestSession() {
  GraphDef graph;
  const auto add = [&graph](const NodeDefBuilder& builder) {
    TF_CHECK_OK(NodeDefBuilder(builder).Finalize(graph.add_node()));
  };
  add(NodeDefBuilder("text", "Const")
          .Attr("dtype", DT_STRING)
          .Attr("value", Tensor("seven"))
          .Device(kCpu));
  add(NodeDefBuilder("number", "Const")
          .Attr("dtype", DT_INT32)
          .Attr("value", Tensor(int32{7}))
          .Device(kCpu));
  add(NodeDefBuilder("stand_in", "StagedNode")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"number", 0, DT_INT32},
                                                      {"text", 0, DT_STRING}})
          .Attr("dtypes", DataTypeVector{DT_STRING, DT_INT32})
          .Attr("indices", std::vector<int>{1, 0})
          .Attr("stage", "prefetch")
          .Device(kGpu));
  add(NodeDefBuilder("there", "StagingTestLinear")
          .Input(
              std::vector<NodeDefBuilder::NodeOut>{{"stand_in", 1, DT_INT32}})
          .Attr("scale", 10)
          .Device(kGpu));
  add(NodeDefBuilder("on_host", "StagingTestTenfoldOnHost")
          .Input("stand_in", 1, DT_INT32)
          .Device(kGpu));
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_CHECK_OK(session->Create(graph));
  return session;
}

TEST(StagedNodeGpuTest, UsersFindValuesInTheMemoryTheyExpect) {
  const std::unique_ptr<Session> session = NewTestSession();
  std::vector<Tensor> outputs;
  ASSERT_EQ(
      session->Run({}, {"stand_in:0", "stand_in:1", "there:0", "on_host:0"}, {},
                   &outputs),
      OkStatus());
  EXPECT_EQ(outputs[0].scalar<tstring>()(), "seven");
  EXPECT_EQ(outputs[1].scalar<int32>()(), 7);
  EXPECT_EQ(outputs[2].scalar<int32>()(), 70);
  EXPECT_EQ(outputs[3].scalar<int32>()(), 70);
  TF_CHECK_OK(session->Close());
}

TEST(StagedNodeGpuTest, ItRunsOnTheGpu) {
  const std::unique_ptr<Session> session = NewTestSession();
  RunOptions options;
  options.set_output_partition_graphs(true);
  RunMetadata metadata;
  std::vector<Tensor> outputs;
  ASSERT_EQ(session->Run(options, {}, {"there:0"}, {}, &outputs, &metadata),
            OkStatus());
  std::string device;
  for (const GraphDef& graph : metadata.partition_graphs()) {
    for (const NodeDef& node : graph.node()) {
      if (node.name() == "stand_in") device = node.device();
    }
  }
  EXPECT_EQ(device, "/job:localhost/replica:0/task:0/device:GPU:0");
  TF_CHECK_OK(session->Close());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
