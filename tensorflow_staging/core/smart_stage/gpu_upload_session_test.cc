// SPDX-License-Identifier: Apache-2.0
//
// Tests in sessions with a fake GPU that a stage with stage_subgraph_on_cpu
// goes on while the GPU is busy with a step, also where its records need more
// and more memory.

#include <gtest/gtest.h>

#include <chrono>  // NOLINT
#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/time/clock.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/full_buffer.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

// Passes a number on; some of them late, so that the records after them are made
// before them.
class LateOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    if (ctx->input(0).scalar<int64_t>()() % 5 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    ctx->set_output(0, ctx->input(0));
  }
};

REGISTER_OP("StagingTestLate").Input("x: int64").Output("y: int64");
REGISTER_KERNEL_BUILDER(Name("StagingTestLate").Device(DEVICE_CPU), LateOp);

// What a stage's records are like.
struct Case {
  std::string name;
  int64_t capacity;
  // How many numbers the first record has, and how many more each next one. A
  // full buffer of the last ones has to fit into the fake GPU.
  int64_t size;
  int64_t growth;
  int threads = 1;
  // Whether they make the records of one, in the same order.
  bool is_ordered = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// A session over
//
//   record (0, 1, 2, ...) --> values --> Put    Take --> result
//
// where the n-th record has the number n as often as the case says, and result
// is ten times the record. Only Put, Take and `result` are on the GPU.
class GpuUploadSessionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    StageTestGraph stage;
    stage.capacity = GetParam().capacity;
    GraphDef graph;
    AddRangeSource(/*stop=*/int64_t{1} << 40, &graph);
    const auto add = [&graph](NodeDefBuilder builder) {
      StageTestGraph::Add(builder, &graph);
    };
    add(Linear("size", "record")
            .Attr("scale", GetParam().growth)
            .Attr("offset", GetParam().size)
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("shape", "Pack")
            .Input(std::vector<NodeDefBuilder::NodeOut>{{"size", 0, DT_INT64}})
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("late", "StagingTestLate")
            .Input("record", 0, DT_INT64)
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("values", "Fill")
            .Input("shape", 0, DT_INT64)
            .Input(GetParam().is_ordered ? "late" : "record", 0, DT_INT64)
            .Device("/device:CPU:0"));
    stage.AddTo(&graph, "values");
    if (GetParam().is_ordered) {
      for (NodeDef& node : *graph.mutable_node()) {
        if (node.op() == kPutOp) AddNodeAttr(kIsOrderedAttr, true, &node);
      }
    }
    add(Linear("result", stage.Node(kTakeOp))
            .Attr("scale", 10)
            .Device("/device:GPU:0"));

    OptimizerFields fields;
    fields.set_stage_subgraph_on_cpu(true);
    SessionOptions options;
    CHECK(options.config.mutable_graph_options()
              ->mutable_optimizer_options()
              ->MergeFromString(fields.SerializeAsString()));
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
    gpu_ = FakeGpu::Of(session_.get());

    PrefetchRunnerOptions runner = RunnerOptionsOf(stage);
    for (int i = 0; i < GetParam().threads; ++i) {
      runner.add_fetch_ops(stage.Node(kPutOp));
    }
    TF_CHECK_OK(PrefetchRunner::Create(session_, runner, &runner_));
  }

  void TearDown() override {
    SetFakeGpuDelay(absl::ZeroDuration());
    if (session_ != nullptr) TF_CHECK_OK(session_->Close());
  }

  static NodeDefBuilder Linear(const std::string& name,
                               const std::string& input) {
    return NodeDefBuilder(name, "StagingTestLinear")
        .Input(std::vector<NodeDefBuilder::NodeOut>{{input, 0, DT_INT64}});
  }

  // Checks the record of a step. Producers overtake each other.
  void Step() {
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({}, {"result"}, {}, &outputs), OkStatus());
    const auto values = outputs[0].flat<int64_t>();
    const int64_t record = values(0) / 10;
    if (GetParam().threads == 1 || GetParam().is_ordered) {
      ASSERT_EQ(record, steps_);
    }
    ASSERT_TRUE(records_.insert(record).second) << record;
    ASSERT_EQ(values.size(), GetParam().size + record * GetParam().growth);
    for (int64_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values(i), 10 * record) << i;
    }
    ++steps_;
  }

  std::shared_ptr<Session> session_;
  FakeGpu* gpu_ = nullptr;
  std::shared_ptr<PrefetchRunner> runner_;
  int64_t steps_ = 0;
  // Those of the steps.
  std::set<int64_t> records_;
};

INSTANTIATE_TEST_SUITE_P(
    Cases, GpuUploadSessionTest,
    ::testing::Values(Case{"ALargeCapacity", 500, 1000, 0},
                      Case{"ManyProducers", 100, 1000, 0, 4},
                      Case{"ManyProducersInOrder", 100, 1000, 0, 4, true},
                      Case{"GrowingRecords", 100, 10, 100},
                      Case{"LargeRecords", 20, 20000, 0},
                      Case{"AutotunedCapacity", kAutotune, 1000, 10}),
    [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST_P(GpuUploadSessionTest, AStageStartsWhileTheGpuIsBusy) {
  StoppedFakeGpu stopped(gpu_);
  TF_CHECK_OK(runner_->Start());
  BufferStats stats;
  AwaitFullBuffer(runner_.get(), &stats);
  ASSERT_FALSE(HasFailure());
  stopped.Release();
  for (int64_t i = 0; i < 2 * stats.room(); ++i) Step();
}

// The buffer grows slowly after the first step, or when it has been empty. Each
// round has a step that keeps the GPU busy until the buffer is full.
TEST_P(GpuUploadSessionTest, AStageGrowsWhileTheGpuIsBusy) {
  TF_CHECK_OK(runner_->Start());
  SetFakeGpuDelay(absl::Microseconds(50));
  for (int round = 0; round < 5; ++round) {
    BufferStats stats;
    {
      StoppedFakeGpu stopped(gpu_);
      const int64_t syncs = gpu_->counts().syncs;
      const std::unique_ptr<Thread> thread(
          Env::Default()->StartThread({}, "step", [this] { Step(); }));
      const absl::Time deadline = absl::Now() + absl::Seconds(10);
      while (gpu_->counts().syncs == syncs && absl::Now() < deadline) {
        std::this_thread::yield();
      }
      EXPECT_GT(gpu_->counts().syncs, syncs) << "The step has no record.";
      AwaitFullBuffer(runner_.get(), &stats);
      stopped.Release();
    }
    ASSERT_FALSE(HasFailure());
    for (int64_t i = 0; i < 2 * stats.room(); ++i) Step();
  }
}

// What the copies use outlives the session.
TEST_P(GpuUploadSessionTest, ASessionEndsWhileCopiesAreQueued) {
  StoppedFakeGpu stopped(gpu_);
  TF_CHECK_OK(runner_->Start());
  BufferStats stats;
  AwaitFullBuffer(runner_.get(), &stats);
  runner_.reset();
  TF_CHECK_OK(session_->Close());
  session_.reset();
}

TEST_P(GpuUploadSessionTest, ADeliveredRecordHasOnlyItsElementOnTheHost) {
  TF_CHECK_OK(runner_->Start());
  BufferStats stats;
  AwaitFullBuffer(runner_.get(), &stats);
  ASSERT_EQ(stats.device_bytes_size(), 1);
  const int64_t on_host = stats.bytes() - stats.device_bytes(0);
  EXPECT_EQ(on_host, stats.records() * sizeof(int64_t));
}

// Whichever producer gets the memory, a record that waits for it is not behind one
// that has it.
TEST_P(GpuUploadSessionTest, MemoryForOneRecordIsEnough) {
  if (GetParam().growth > 0) GTEST_SKIP();
  SetFakeGpuDelay(absl::Microseconds(100));
  // Blocks are up to a quarter larger.
  const LimitedFakeGpu limited(gpu_, GetParam().size * 10 + 1000);
  TF_CHECK_OK(runner_->Start());
  for (int i = 0; i < 200; ++i) {
    Step();
    if (HasFatalFailure()) return;
  }
}

// A GPU copies from pinned memory without the host.
TEST_P(GpuUploadSessionTest, CopiesComeFromPinnedMemory) {
  const int64_t copies = gpu_->counts().host_to_device.count;
  const int64_t bytes = gpu_->counts().host_to_device.bytes;
  const int64_t from_pageable = gpu_->counts().from_pageable.count;
  TF_CHECK_OK(runner_->Start());
  for (int i = 0; i < 30; ++i) Step();
  runner_->Stop();
  EXPECT_EQ(gpu_->counts().from_pageable.count, from_pageable);
  // Stop may have cancelled runs that had copied their records.
  const int64_t records = runner_->GetStats().records;
  EXPECT_GE(gpu_->counts().host_to_device.count - copies, records);
  EXPECT_LE(gpu_->counts().host_to_device.count - copies,
            records + GetParam().threads);
  EXPECT_GE(gpu_->counts().host_to_device.bytes - bytes,
            records * GetParam().size * 8);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
