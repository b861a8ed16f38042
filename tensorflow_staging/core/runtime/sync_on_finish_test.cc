// SPDX-License-Identifier: Apache-2.0
//
// Tests that staged runs do not wait until their GPU is idle, and that steps
// do.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/full_buffer.h"
#include "tensorflow_staging/core/testing/local_server.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kCapacity = 3;
constexpr char kGpu[] = "/device:GPU:0";
constexpr char kPut[] = "prefetch/TensorBufferPut";

// A session, local or of a server (the parameter), over
//
//   record (0, 1, 2, ...) --> upload --> prepared --> Put    Take --> result
//
// where result is 10 * (record + 1), and all nodes but the first are on the
// GPU. Nothing is copied there, because a kernel brings the record with it. And
// `beside`, which is on the GPU and needs no record.
class StagedRunSyncTest : public ::testing::TestWithParam<bool> {
 protected:
  StagedRunSyncTest() {
    StageTestGraph stage;
    stage.capacity = kCapacity;
    GraphDef graph;
    const auto add = [&graph](NodeDefBuilder builder) {
      StageTestGraph::Add(builder, &graph);
    };
    AddRangeSource(/*stop=*/1000, &graph);
    add(NodeDefBuilder("upload", "StagingTestUpload")
            .Input("record", 0, DT_INT64)
            .Device(kGpu));
    add(Linear("prepared", "upload").Attr("offset", 1));
    stage.AddTo(&graph, "prepared");
    add(NodeDefBuilder("number", "Placeholder").Attr("dtype", DT_INT64));
    add(NodeDefBuilder("upload_number", "StagingTestUpload")
            .Input("number", 0, DT_INT64)
            .Device(kGpu));
    add(Linear("beside", "upload_number").Attr("offset", 1));
    for (NodeDef& node : *graph.mutable_node()) {
      if (absl::StrContains(node.op(), "TensorBuffer")) node.set_device(kGpu);
    }
    add(Linear("result", stage.Node("TensorBufferTake")).Attr("scale", 10));

    SessionOptions session_options;
    if (GetParam()) session_options.target = LocalServerTarget();
    session_.reset(NewSession(session_options));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));

    PrefetchRunnerOptions options = RunnerOptionsOf(stage);
    options.add_fetch_ops(kPut);
    options.add_closed_exceptions(error::OUT_OF_RANGE);
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
  }

  ~StagedRunSyncTest() override { SetFakeGpuDelay(absl::ZeroDuration()); }

  static NodeDefBuilder Linear(const std::string& name,
                               const std::string& input) {
    return NodeDefBuilder(name, "StagingTestLinear")
        .Input(std::vector<NodeDefBuilder::NodeOut>{{input, 0, DT_INT64}})
        .Device(kGpu);
  }

  FakeGpu* Gpu() { return FakeGpu::Of(local_session_.get()); }

  int64_t Syncs() { return Gpu()->counts().syncs; }

  int64_t Step() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"result"}, {}, &outputs));
    return outputs[0].scalar<int64_t>()();
  }

  // Shares the GPU with all sessions of the process.
  const std::unique_ptr<Session> local_session_{NewSession(SessionOptions())};
  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

INSTANTIATE_TEST_SUITE_P(LocalAndServer, StagedRunSyncTest, ::testing::Bool());

TEST_P(StagedRunSyncTest, StagedRunsEndWhileTheGpuIsBusy) {
  StoppedFakeGpu stopped(Gpu());
  TF_CHECK_OK(runner_->Start());
  AwaitRecords(*runner_, kCapacity);
  stopped.Release();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Step(), 10 * (i + 1));
}

TEST_P(StagedRunSyncTest, OtherRunsEndWhenTheGpuIsIdle) {
  const int64_t before = Syncs();
  StoppedFakeGpu stopped(Gpu());
  absl::Notification ended;
  const std::unique_ptr<Thread> thread(
      Env::Default()->StartThread({}, "test", [&] {
        TF_CHECK_OK(session_->Run({{"number", Tensor(int64_t{7})}}, {},
                                  {"beside"}, nullptr));
        ended.Notify();
      }));
  while (Syncs() == before) std::this_thread::yield();
  EXPECT_FALSE(ended.HasBeenNotified());
  stopped.Release();
  ended.WaitForNotification();
}

TEST_P(StagedRunSyncTest, OnlyStepsSynchronize) {
  SetFakeGpuDelay(absl::Microseconds(200));
  const int64_t before = Syncs();
  TF_CHECK_OK(runner_->Start());
  constexpr int kSteps = 50;
  for (int i = 0; i < kSteps; ++i) EXPECT_EQ(Step(), 10 * (i + 1));
  AwaitRecords(*runner_, kCapacity);
  runner_->Stop();
  EXPECT_GE(runner_->GetStats().records, kSteps);
  EXPECT_EQ(Syncs() - before, kSteps);
}

// Nothing that is queued uses what the session frees.
TEST_P(StagedRunSyncTest, ASessionEndsWhileStagedKernelsAreQueued) {
  StoppedFakeGpu stopped(Gpu());
  TF_CHECK_OK(runner_->Start());
  AwaitRecords(*runner_, kCapacity);
  runner_.reset();
  TF_CHECK_OK(session_->Close());
  session_.reset();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
