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
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
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

}  // namespace
}  // namespace staging
}  // namespace tensorflow
