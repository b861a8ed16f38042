// SPDX-License-Identifier: Apache-2.0
//
// Tests how the ops of a stage find its buffer if some of them are on a fake
// GPU.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kCpu[] = "/device:CPU:0";
constexpr char kGpu[] = "/device:GPU:0";

// Returns a session over a stage whose Puts and Takes are on these devices. All
// other nodes are on the CPU.
std::unique_ptr<Session> NewTestSession(const std::string& put_device,
                                        const std::string& take_device) {
  StageTestGraph stage;
  stage.capacity = 2;
  GraphDef graph;
  StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                      &graph);
  stage.AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    node.set_device(node.op() == "TensorBufferPut"    ? put_device
                    : node.op() == "TensorBufferTake" ? take_device
                                                      : kCpu);
  }
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_CHECK_OK(session->Create(graph));
  return session;
}

TEST(BufferOnGpuTest, ControlOpsOnTheCpuFindTheBuffer) {
  const auto session = NewTestSession(kGpu, kGpu);
  TF_CHECK_OK(session->Run({}, {}, {"prefetch/TensorBufferPut"}, nullptr));
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session->Run({}, {"prefetch/TensorBufferSize:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 1);
  TF_CHECK_OK(session->Run({}, {"prefetch/TensorBufferTake:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 7);
}

TEST(BufferOnGpuTest, RecordsOfOneStageAreOnOneDevice) {
  const auto session = NewTestSession(kGpu, kCpu);
  TF_CHECK_OK(session->Run({}, {}, {"prefetch/TensorBufferPut"}, nullptr));
  std::vector<Tensor> outputs;
  const Status status =
      session->Run({}, {"prefetch/TensorBufferTake:0"}, {}, &outputs);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(
      status.message(), "is on CPU:0, but the stage's records are on GPU:0"))
      << status;
}

// Runs a Put whose only input it is to copy by itself.
Status PutWithCopiedInputs(const std::string& device,
                           const std::vector<int>& on_host,
                           const std::vector<int>& copied) {
  GraphDef graph;
  StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                      &graph);
  StageTestGraph().AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    const bool put = node.op() == "TensorBufferPut";
    node.set_device(put ? device : kCpu);
    if (!put) continue;
    AddNodeAttr("_input_hostmem", on_host, &node);
    AddNodeAttr(kCopiedInputsAttr, copied, &node);
  }
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  return session->Run({}, {}, {"prefetch/TensorBufferPut"}, nullptr);
}

TEST(BufferOnGpuTest, AGraphWithWrongCopiedInputsIsRefused) {
  EXPECT_EQ(PutWithCopiedInputs(kGpu, {0}, {0}), OkStatus());
  const auto expect = [](const Status& status, const std::string& text) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  expect(PutWithCopiedInputs(kCpu, {0}, {0}), "it is for Puts on accelerators");
  expect(PutWithCopiedInputs(kGpu, {0}, {1}), "contains 1; it must contain");
  expect(PutWithCopiedInputs(kGpu, {0}, {-1}), "contains -1; it must contain");
  expect(PutWithCopiedInputs(kGpu, {0}, {0, 0}), "in ascending order");
  expect(PutWithCopiedInputs(kGpu, {}, {0}), "is not a tensor in host memory");
}

// Runs a Put with an input on the host that the attributes say is for `device`.
Status PutWithShares(const std::string& put_device, const std::string& device,
                     int tensor) {
  GraphDef graph;
  StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                      &graph);
  StageTestGraph().AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    const bool put = node.op() == kPutOp;
    node.set_device(put ? put_device : kCpu);
    if (!put) continue;
    AddNodeAttr("_input_hostmem", std::vector<int>{0}, &node);
    AddNodeAttr(kShareDevicesAttr, std::vector<std::string>{device}, &node);
    AddNodeAttr(kShareTensorsAttr, std::vector<int>{tensor}, &node);
  }
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  return session->Run({}, {}, {"prefetch/TensorBufferPut"}, nullptr);
}

TEST(BufferOnGpuTest, AGraphWithWrongSharesIsRefused) {
  const auto expect = [](const Status& status, const std::string& text) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  const std::string task = "/job:localhost/replica:0/task:0";
  EXPECT_EQ(PutWithShares(kGpu, task + kGpu, 0), OkStatus());
  expect(PutWithShares(kCpu, task + kGpu, 0), "it is for Puts on accelerators");
  expect(PutWithShares(kGpu, task + kGpu, 1), "contains 1; it must contain");
  expect(PutWithShares(kGpu, "GPU", 0), "which is no full name");
  expect(PutWithShares(kGpu, task + "/device:GPU:9", 0),
         "which is no device of this session");
}

// Runs a Take, of whose records the attributes say that another GPU gets a part.
Status TakeWithShares(bool gives, const DataTypeVector& dtypes) {
  StageTestGraph stage;
  GraphDef graph;
  StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                      &graph);
  stage.AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    const bool take = node.op() == kTakeOp;
    node.set_device(take || node.op() == kPutOp ? kGpu : kCpu);
    if (!take) continue;
    node.mutable_attr()->erase("dtypes");
    AddNodeAttr("dtypes", dtypes, &node);
    AddNodeAttr(kShareDevicesAttr,
                std::vector<std::string>{
                    "/job:localhost/replica:0/task:0/device:GPU:1"},
                &node);
    AddNodeAttr(kShareTensorsAttr, std::vector<int>{0}, &node);
    AddNodeAttr(kGivesSharesAttr, gives, &node);
  }
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  TF_RETURN_IF_ERROR(session->Run({}, {}, {stage.Node(kPutOp)}, nullptr));
  return session->Run({}, {}, {stage.Node(kTakeOp)}, nullptr);
}

TEST(BufferOnGpuTest, ATakeWithWrongSharesIsRefused) {
  const auto expect = [](const Status& status, const std::string& text) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  expect(TakeWithShares(false, {DT_INT64}),
         "is on GPU:0, with tensors 0 on the host, with tensors 0 also for "
         "GPU:1, but the stage's records are on GPU:0, with tensors 0 on the "
         "host.");
  expect(TakeWithShares(true, {DT_INT64}),
         "its last output is not a variant in host memory");
  expect(TakeWithShares(true, {DT_VARIANT}), "contains 0; it must contain");
  expect(TakeWithShares(false, {DT_STRING}), "cannot be copied as bytes");
}

// Anybody can write a graph with the op.
TEST(BufferOnGpuTest, ATensorThatIsNoShareIsRefused) {
  GraphDef graph;
  AddRangeSource(/*stop=*/10, &graph);
  StageTestGraph::Add(NodeDefBuilder("share", kShareOp)
                          .Input("dataset", 0, DT_VARIANT)
                          .Attr("dtypes", DataTypeVector{DT_INT64})
                          .Attr("indices", std::vector<int>{0})
                          .Device(kGpu),
                      &graph);
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_CHECK_OK(session->Create(graph));
  const Status status = session->Run({}, {}, {"share"}, nullptr);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "the shares of a record"))
      << status;
}

// Runs the Put and the Take of a stage, each with its attributes, in a session
// with two GPUs, of which each has two streams.
Status PutAndTake(const std::string& put_device, bool hands_over,
                  const std::string& take_device, const std::string& lender) {
  StageTestGraph stage;
  GraphDef graph;
  StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                      &graph);
  stage.AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    node.set_device(node.op() == kPutOp    ? put_device
                    : node.op() == kTakeOp ? take_device
                                           : kCpu);
    if (node.op() == kPutOp && hands_over) {
      AddNodeAttr(kHandsOverAttr, true, &node);
    }
    if (node.op() == kTakeOp && !lender.empty()) {
      AddNodeAttr(kBorrowsFromAttr, lender, &node);
    }
  }
  SetFakeGpuCount(2);
  std::unique_ptr<Session> session(
      NewSession(OptionsWithStreams(/*gpus=*/2, /*streams=*/2)));
  SetFakeGpuCount(1);
  TF_RETURN_IF_ERROR(session->Create(graph));
  TF_RETURN_IF_ERROR(session->Run({}, {}, {stage.Node(kPutOp)}, nullptr));
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(
      session->Run({}, {stage.Node(kTakeOp) + ":0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 7);
  return OkStatus();
}

TEST(BufferOnGpuTest, RecordsAreLentToAnotherStreamOfTheirGpu) {
  const std::string lender = "/job:localhost/replica:0/task:0/device:GPU:2";
  EXPECT_EQ(PutAndTake("/device:GPU:2", true, "/device:GPU:0", lender),
            OkStatus());
}

TEST(BufferOnGpuTest, AGraphWithAWrongLenderIsRefused) {
  const auto expect = [](const Status& status, const std::string& text) {
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  const std::string task = "/job:localhost/replica:0/task:0";
  expect(PutAndTake("/device:GPU:1", true, "/device:GPU:0",
                    task + "/device:GPU:1"),
         "that is another GPU");
  expect(PutAndTake("/device:GPU:2", false, "/device:GPU:0",
                    task + "/device:GPU:2"),
         "the stage's records are on GPU:2.");
  expect(PutAndTake("/device:GPU:2", true, "/device:GPU:2", ""),
         "the stage's records are on GPU:2, lent to other streams.");
  expect(PutAndTake("/device:GPU:2", true, "/device:GPU:0", "nowhere"),
         "'nowhere', which is no device's full name");
  expect(PutAndTake("/device:GPU:2", true, "/device:GPU:0",
                    task + "/device:GPU:9"),
         "is on GPU:9, lent to other streams, but the stage's records are on");
  expect(PutAndTake("/device:GPU:2", true, "/device:GPU:0",
                    "/job:other/replica:0/task:0/device:GPU:2"),
         "which is no device of this session");
  expect(PutAndTake(kCpu, true, kCpu, ""), "it is for Puts on accelerators");
  expect(PutAndTake(kCpu, false, kCpu, task + "/device:GPU:0"),
         "it is for Takes on accelerators");
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
