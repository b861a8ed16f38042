// SPDX-License-Identifier: Apache-2.0
//
// Tests copies of records from a fake GPU, and what becomes of records that
// cannot be copied.

#include "tensorflow_staging/core/records/record_copies.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

// Copies a record of two tensors, of which the first is on `device`, to the host.
REGISTER_OP("StagingTestCopyRecord")
    .Input("on_device: T")
    .Input("on_host: int64")
    .Output("copy: T")
    .Output("same: int64")
    .Attr("device: string")
    .Attr("T: type");

class CopyRecordOp : public OpKernel {
 public:
  explicit CopyRecordOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("device", &layout_.device));
    layout_.on_device = {0};
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<Tensor> record = {ctx->input(0), ctx->input(1)};
    OP_REQUIRES_OK(ctx, CopyToHost(ctx, layout_, &record));
    ctx->set_output(0, record[0]);
    ctx->set_output(1, record[1]);
  }

 private:
  RecordLayout layout_;
};

// On a CPU, what is on the device is not where the op says.
REGISTER_KERNEL_BUILDER(Name("StagingTestCopyRecord").Device(DEVICE_CPU),
                        CopyRecordOp);
REGISTER_KERNEL_BUILDER(Name("StagingTestCopyRecord")
                            .Device(DEVICE_GPU)
                            .HostMemory("on_host")
                            .HostMemory("copy")
                            .HostMemory("same"),
                        CopyRecordOp);

// Copies a record whose first tensor is `tensor`, with 7 as the other one.
Status Copy(const Tensor& tensor, std::vector<Tensor>* copies,
            const std::string& device = kGpu,
            const std::string& device_of_op = "/device:CPU:0") {
  const auto add = [](NodeDefBuilder builder, GraphDef* graph) {
    StageTestGraph::Add(builder.Device("/device:CPU:0"), graph);
  };
  GraphDef graph;
  add(NodeDefBuilder("tensor", "Placeholder").Attr("dtype", tensor.dtype()),
      &graph);
  add(StageTestGraph::Const("other", Tensor(int64_t{7})), &graph);
  StageTestGraph::Add(NodeDefBuilder("copy", "StagingTestCopyRecord")
                          .Attr("device", device)
                          .Input("tensor", 0, tensor.dtype())
                          .Input("other", 0, DT_INT64)
                          .Device(device_of_op),
                      &graph);
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  return session->Run({{"tensor", tensor}}, {"copy:0", "copy:1"}, {}, copies);
}

void ExpectRefused(const Tensor& tensor, const std::string& device,
                   const std::string& text) {
  std::vector<Tensor> copies;
  const Status status = Copy(tensor, &copies, device);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
}

// A type that no GPU can hold.
struct HostOnly {
  std::string TypeName() const { return "StagingTestHostOnly"; }
  void Encode(VariantTensorData* data) const {}
  bool Decode(const VariantTensorData& data) { return true; }
};

TEST(RecordCopiesTest, ACopyIsWhatIsOnTheGpu) {
  Tensor tensor(DT_FLOAT, TensorShape({2, 3}));
  for (int i = 0; i < 6; ++i) tensor.flat<float>()(i) = 1.5f * i;
  std::vector<Tensor> copies;
  ASSERT_EQ(Copy(tensor, &copies, kGpu, /*device_of_op=*/kGpu), OkStatus());
  EXPECT_EQ(copies[0].shape(), tensor.shape());
  EXPECT_EQ(copies[0].tensor_data(), tensor.tensor_data());
  EXPECT_EQ(copies[1].scalar<int64_t>()(), 7);
}

TEST(RecordCopiesTest, AnEmptyTensorKeepsItsShape) {
  std::vector<Tensor> copies;
  ASSERT_EQ(Copy(Tensor(DT_FLOAT, {0, 3}), &copies), OkStatus());
  EXPECT_EQ(copies[0].shape(), TensorShape({0, 3}));
}

// Anybody can write a graph that names a device.
TEST(RecordCopiesTest, AWrongDeviceIsRefused) {
  const Tensor tensor(1.0f);
  ExpectRefused(tensor, "/job:localhost/replica:0/task:0/device:GPU:9",
                "which is no device of this session");
  ExpectRefused(tensor, "/job:localhost/replica:0/task:0/device:CPU:0",
                "which is no accelerator");
}

TEST(RecordCopiesTest, ATypeThatNoGpuHoldsIsRefused) {
  ExpectRefused(Tensor("text"), kGpu,
                "The tensor number 0 of a record could not be copied");
  ExpectRefused(Tensor("text"), kGpu, "it is of type string");
}

TEST(RecordCopiesTest, AVariantThatNoGpuHoldsIsNamed) {
  Tensor tensor(DT_VARIANT, TensorShape({1}));
  tensor.vec<Variant>()(0) = HostOnly();
  std::vector<Tensor> copies;
  const Status status = Copy(tensor, &copies);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "The tensor number 0"))
      << status;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
