// SPDX-License-Identifier: Apache-2.0
//
// Tests with several fake GPUs that each has its share of what a divided function
// carries, before the step asks for it.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeDefBuilder::NodeOut;

constexpr int kGpus = 4;
constexpr char kCpu[] = "/device:CPU:0";

std::string Result(int gpu) { return absl::StrCat("result_", gpu); }

// A session over
//
//   values_0, ..., values_3, common --> put
//   take --> result_k = 10 * (values_k + common), on GPU k
//            copy = values_1, on the CPU
//
// where the take and what uses it may be in a function.
class StepSharesTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    SetFakeGpuCount(kGpus);
    GraphDef graph;
    const auto add = [&graph](NodeDefBuilder builder) {
      TF_CHECK_OK(builder.Finalize(graph.add_node()));
    };
    std::vector<NodeOut> record;
    for (int i = 0; i <= kGpus; ++i) {
      const std::string name =
          i < kGpus ? absl::StrCat("values_", i) : "common";
      add(NodeDefBuilder(name, "Placeholder")
              .Attr("dtype", DT_INT64)
              .Device(kCpu));
      record.push_back({name, 0, DT_INT64});
    }
    add(NodeDefBuilder("buffer", "StepBuffer")
            .Attr("stage", "step")
            .Attr("capacity", 2)
            .Device(kCpu));
    // A handle cannot be fed, so a staging area keeps it from run to run.
    add(NodeDefBuilder("keep", "Stage")
            .Input(std::vector<NodeOut>{{"buffer", 0, DT_RESOURCE}})
            .Attr("shared_name", "handle")
            .Device(kCpu));
    add(NodeDefBuilder("index", "Const")
            .Attr("value", Tensor(0))
            .Attr("dtype", DT_INT32)
            .Device(kCpu));
    add(NodeDefBuilder("handle", "StagePeek")
            .Input("index", 0, DT_INT32)
            .Attr("dtypes", {DT_RESOURCE})
            .Attr("shared_name", "handle")
            .Device(kCpu));
    add(NodeDefBuilder("put", kStepPutOp)
            .Input("handle", 0, DT_RESOURCE)
            .Input(record)
            .Device(kCpu));
    add(NodeDefBuilder("on_cpu", kStepTakeOp)
            .Input("handle", 0, DT_RESOURCE)
            .Attr("dtypes", DataTypeVector(kGpus + 1, DT_INT64))
            .Device(kCpu));
    if (GetParam()) {
      AddFunction(graph.mutable_library());
      NameAttrList function;
      function.set_name("rest");
      add(NodeDefBuilder("call", "StatefulPartitionedCall")
              .Input(std::vector<NodeOut>{{"handle", 0, DT_RESOURCE}})
              .Attr("Tout", DataTypeVector(kGpus + 1, DT_INT64))
              .Attr("f", function)
              .Device(kCpu));
      for (int gpu = 0; gpu < kGpus; ++gpu) {
        add(NodeDefBuilder(Result(gpu), "Identity")
                .Input("call", gpu, DT_INT64)
                .Device(kCpu));
      }
      add(NodeDefBuilder("copy", "Identity")
              .Input("call", kGpus, DT_INT64)
              .Device(kCpu));
    } else {
      add(NodeDefBuilder("take", kStepTakeOp)
              .Input("handle", 0, DT_RESOURCE)
              .Attr("dtypes", DataTypeVector(kGpus + 1, DT_INT64)));
      for (int gpu = 0; gpu < kGpus; ++gpu) {
        add(NodeDefBuilder(Result(gpu), "StagingTestLinear")
                .Input(std::vector<NodeOut>{{"take", gpu, DT_INT64},
                                            {"take", kGpus, DT_INT64}})
                .Attr("scale", 10)
                .Device(absl::StrCat("/device:GPU:", gpu)));
      }
      add(NodeDefBuilder("copy", "StagingTestLinear")
              .Input(std::vector<NodeOut>{{"take", 1, DT_INT64}})
              .Device(kCpu));
    }
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(4);
    session_.reset(NewSession(options));
    SetFakeGpuCount(1);
    TF_CHECK_OK(session_->Create(graph));
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      copies_before_.push_back(Counts(gpu).host_to_device.count);
    }
    TF_CHECK_OK(session_->Run({}, {}, {"keep"}, nullptr));
  }

  static void AddFunction(FunctionDefLibrary* library) {
    std::vector<FunctionDefHelper::Node> nodes = {
        {{"take"},
         kStepTakeOp,
         {"handle"},
         {{"dtypes", DataTypeVector(kGpus + 1, DT_INT64)}}},
        {{"copy"},
         "StagingTestLinear",
         {"take:values:1"},
         {{"T", DT_INT64}, {"N", 1}},
         {},
         kCpu}};
    std::vector<std::string> outputs;
    std::vector<std::pair<std::string, std::string>> returned;
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      nodes.push_back({{Result(gpu)},
                       "StagingTestLinear",
                       {absl::StrCat("take:values:", gpu),
                        absl::StrCat("take:values:", kGpus)},
                       {{"T", DT_INT64}, {"N", 2}, {"scale", 10}},
                       {},
                       absl::StrCat("/device:GPU:", gpu)});
      outputs.push_back(absl::StrCat(Result(gpu), ": int64"));
      returned.emplace_back(Result(gpu), absl::StrCat(Result(gpu), ":y:0"));
    }
    outputs.push_back("copy: int64");
    returned.emplace_back("copy", "copy:y:0");
    *library->add_function() = FunctionDefHelper::Create(
        "rest", {"handle: resource"}, outputs, {}, nodes, returned);
    library->mutable_function(0)->mutable_signature()->set_is_stateful(true);
  }

  static Tensor Values(int64_t value) {
    Tensor values(DT_INT64, {4});
    values.flat<int64_t>().setConstant(value);
    return values;
  }

  void Put(int64_t value) {
    std::vector<std::pair<std::string, Tensor>> feeds = {
        {"common", Values(1000 * value)}};
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      feeds.emplace_back(absl::StrCat("values_", gpu), Values(value + gpu));
    }
    TF_ASSERT_OK(session_->Run(feeds, {}, {"put"}, nullptr));
  }

  void ExpectStep(int64_t value) {
    std::vector<std::string> fetches = {"copy"};
    for (int gpu = 0; gpu < kGpus; ++gpu) fetches.push_back(Result(gpu));
    std::vector<Tensor> outputs;
    TF_ASSERT_OK(session_->Run({}, fetches, {}, &outputs));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(outputs[0].flat<int64_t>()(i), value + 1);
      for (int gpu = 0; gpu < kGpus; ++gpu) {
        EXPECT_EQ(outputs[1 + gpu].flat<int64_t>()(i),
                  10 * (value + gpu + 1000 * value));
      }
    }
  }

  FakeGpuCounts& Counts(int gpu) {
    return FakeGpu::Of(session_.get(), gpu)->counts();
  }

  // A GPU counts for all sessions of the process.
  void ExpectCopies(int64_t count) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      EXPECT_EQ(Counts(gpu).host_to_device.count - copies_before_[gpu], count)
          << gpu;
      EXPECT_EQ(Counts(gpu).device_to_device.count, 0) << gpu;
    }
  }

  std::unique_ptr<Session> session_;
  std::vector<int64_t> copies_before_;
};

TEST_P(StepSharesTest, FromTheFirstStepOnPutsCopyToEachGpu) {
  Put(1);
  Put(2);
  ExpectCopies(0);
  ExpectStep(1);
  ExpectStep(2);
  ExpectCopies(2);
  Put(3);
  ExpectCopies(3);
  ExpectStep(3);
  ExpectCopies(3);
}

TEST_P(StepSharesTest, APutGoesOnWhileAGpuIsBusy) {
  Put(1);
  ExpectStep(1);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), gpu));
    Put(2);
    Put(3);
    stopped.Release();
    ExpectStep(2);
    ExpectStep(3);
  }
}

TEST_P(StepSharesTest, AStepOnTheCpuGetsARecordThatHasShares) {
  Put(1);
  ExpectStep(1);
  Put(2);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(
      session_->Run({}, {"on_cpu:0", "on_cpu:3", "on_cpu:4"}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<int64_t>()(3), 2);
  EXPECT_EQ(outputs[1].flat<int64_t>()(3), 2 + 3);
  EXPECT_EQ(outputs[2].flat<int64_t>()(3), 2000);
}

TEST_P(StepSharesTest, EmptyTensorsNeedNoCopy) {
  Put(1);
  ExpectStep(1);
  std::vector<std::pair<std::string, Tensor>> feeds = {
      {"common", Tensor(DT_INT64, {0})}};
  std::vector<std::string> fetches;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    feeds.emplace_back(absl::StrCat("values_", gpu), Tensor(DT_INT64, {0}));
    fetches.push_back(Result(gpu));
  }
  TF_ASSERT_OK(session_->Run(feeds, {}, {"put"}, nullptr));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session_->Run({}, fetches, {}, &outputs));
  for (const Tensor& output : outputs) EXPECT_EQ(output.NumElements(), 0);
}

// One GPU after the other has memory for one record.
TEST_P(StepSharesTest, WithoutMemoryOnAGpuStepsCopy) {
  Put(1);
  ExpectStep(1);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const LimitedFakeGpu limited(FakeGpu::Of(session_.get(), gpu),
                                 /*bytes=*/256);
    std::thread producer([this] {
      for (int64_t value = 2; value < 20; ++value) Put(value);
    });
    for (int64_t value = 2; value < 20; ++value) ExpectStep(value);
    producer.join();
  }
}

// What a step that fails has taken is given back, on each GPU. The last test, since
// memory of such a step may stay in use: LocalRendezvous::Send asks whether the step
// has failed before it locks its table, so what is sent then stays in the table and
// keeps it alive.
TEST_P(StepSharesTest, FailingStepsKeepNoMemory) {
  constexpr int kRounds = 50;
  constexpr int kFailuresOfARound = 10;
  constexpr int64_t kBlock = 256;
  const auto fail = [this] {
    std::vector<std::pair<std::string, Tensor>> feeds = {
        {"common", Tensor(DT_INT64, {3})}};
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      feeds.emplace_back(absl::StrCat("values_", gpu), Values(gpu));
    }
    TF_ASSERT_OK(session_->Run(feeds, {}, {"put"}, nullptr));
    std::vector<Tensor> outputs;
    const Status status =
        session_->Run({}, {Result(0), Result(3)}, {}, &outputs);
    ASSERT_TRUE(errors::IsInvalidArgument(status)) << status;
  };
  const auto peak = [this](int gpu) {
    return FakeGpu::Of(session_.get(), gpu)->peak_bytes();
  };
  Put(1);
  ExpectStep(1);
  std::vector<int64_t> before;
  for (int gpu = 0; gpu < kGpus; ++gpu) before.push_back(peak(gpu));
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kFailuresOfARound; ++i) fail();
    // Its results come after the blocks of the steps before, in the same thread.
    Put(round);
    ExpectStep(round);
    if (HasFatalFailure()) return;
  }
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    // Half of what one block for each step would be.
    EXPECT_LE(peak(gpu), before[gpu] + kRounds * kFailuresOfARound / 2 * kBlock)
        << gpu;
  }
}

INSTANTIATE_TEST_SUITE_P(InFunction, StepSharesTest, ::testing::Bool());

}  // namespace
}  // namespace staging
}  // namespace tensorflow
