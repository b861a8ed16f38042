// SPDX-License-Identifier: Apache-2.0
//
// Tests in a session with a fake GPU of two streams that the step on one stream
// gets the records of a stage on the other without a copy.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/full_buffer.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kCapacity = 4;

// A session over
//
//   record (0, 1, 2, ...) --> upload --> prepared --> Put    Take --> result
//
// where result is 10 * (record + 1). The step, which is `result`, is on the
// first stream, and what is before it on `stage_device`.
class HandoverSessionTest : public ::testing::Test {
 protected:
  ~HandoverSessionTest() override { SetFakeGpuDelay(absl::ZeroDuration()); }

  void Start(int gpus, const std::string& stage_device) {
    SetFakeGpuCount(gpus);
    StageTestGraph stage;
    stage.capacity = kCapacity;
    GraphDef graph;
    AddRangeSource(/*stop=*/int64_t{1} << 40, &graph);
    StageTestGraph::Add(NodeDefBuilder("upload", "StagingTestUpload")
                            .Input("record", 0, DT_INT64)
                            .Device(stage_device),
                        &graph);
    StageTestGraph::Add(
        Linear("prepared", "upload").Attr("offset", 1).Device(stage_device),
        &graph);
    stage.AddTo(&graph, "prepared");
    for (NodeDef& node : *graph.mutable_node()) {
      if (absl::StrContains(node.op(), "TensorBuffer")) {
        node.set_device(stage_device);
      }
    }
    StageTestGraph::Add(Linear("result", stage.Node("TensorBufferTake"))
                            .Attr("scale", 10)
                            .Device("/device:GPU:0"),
                        &graph);
    session_.reset(NewSession(OptionsWithStreams(gpus, /*streams=*/2)));
    SetFakeGpuCount(1);
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));

    PrefetchRunnerOptions options = RunnerOptionsOf(stage);
    options.add_fetch_ops(stage.Node("TensorBufferPut"));
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  static NodeDefBuilder Linear(const std::string& name,
                               const std::string& input) {
    return NodeDefBuilder(name, "StagingTestLinear")
        .Input(std::vector<NodeDefBuilder::NodeOut>{{input, 0, DT_INT64}});
  }

  FakeGpuCounts& Counts(int device) {
    return FakeGpu::Of(session_.get(), device)->counts();
  }

  Status Step(int64_t* result) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run({}, {"result"}, {}, &outputs));
    *result = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }

  // Runs the steps of the records from `begin` to `end` - 1.
  void RunSteps(int64_t begin, int64_t end) {
    for (int64_t record = begin; record < end; ++record) {
      int64_t result = 0;
      ASSERT_EQ(Step(&result), OkStatus());
      ASSERT_EQ(result, 10 * (record + 1));
    }
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

TEST_F(HandoverSessionTest, NeitherACopyNorAWait) {
  Start(/*gpus=*/1, "/device:GPU:1");
  SetFakeGpuDelay(absl::Microseconds(200));
  const auto copies = [this] {
    return Counts(0).device_to_device.count + Counts(1).device_to_device.count;
  };
  const int64_t copies_before = copies();
  const int64_t waits_before = Counts(0).compute_waits;
  RunSteps(0, 300);
  EXPECT_EQ(copies(), copies_before);
  EXPECT_EQ(Counts(0).compute_waits, waits_before);
}

TEST_F(HandoverSessionTest, ARecordIsPutWhenItHasBeenComputed) {
  Start(/*gpus=*/1, "/device:GPU:1");
  RunSteps(0, 10);
  AwaitRecords(*runner_, 10 + kCapacity);
  StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), 1));
  RunSteps(10, 10 + kCapacity);
  // At most one more record had been computed, whose Put waited for room.
  absl::Notification ended;
  const std::unique_ptr<Thread> thread(
      Env::Default()->StartThread({}, "step", [&] {
        RunSteps(10 + kCapacity, 10 + kCapacity + 3);
        ended.Notify();
      }));
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  stopped.Release();
  ended.WaitForNotification();
}

TEST_F(HandoverSessionTest, MemoryDoesNotGrow) {
  Start(/*gpus=*/1, "/device:GPU:1");
  RunSteps(0, 1000);
  const auto peak = [this] {
    return FakeGpu::Of(session_.get(), 1)->peak_bytes();
  };
  const int64_t peak_before = peak();
  const char* const records = std::getenv("STAGING_RECORDS");
  RunSteps(1000, records == nullptr ? 20000 : std::stoll(records));
  // A loan may end late, when a thread is not scheduled.
  EXPECT_LE(peak(), 2 * peak_before);
}

TEST_F(HandoverSessionTest, ClosingEndsWithRecordsOnLoan) {
  for (int round = 0; round < 20; ++round) {
    Start(/*gpus=*/1, "/device:GPU:1");
    RunSteps(0, 3);
    StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), 0));
    const int64_t syncs = Counts(0).syncs;
    // The step has its record, and waits for its stream.
    const std::unique_ptr<Thread> thread(
        Env::Default()->StartThread({}, "step", [session = session_] {
          session->Run({}, {}, {"result"}, nullptr).IgnoreError();
        }));
    while (Counts(0).syncs == syncs) std::this_thread::yield();
    ASSERT_EQ(session_->Close(), OkStatus());
    runner_.reset();
    session_.reset();
    stopped.Release();
  }
}

TEST_F(HandoverSessionTest, RecordsOfAnotherGpuAreCopied) {
  Start(/*gpus=*/2, "/device:GPU:1");
  RunSteps(0, 100);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
