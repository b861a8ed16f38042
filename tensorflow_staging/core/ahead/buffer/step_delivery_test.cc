// SPDX-License-Identifier: Apache-2.0
//
// Tests with a fake GPU that what a divided function carries is in the memory of
// the GPU before the step asks for it.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeDefBuilder::NodeOut;

// Memory of somebody else.
class Foreign : public ::tensorflow::TensorBuffer {
 public:
  static constexpr int64_t kSize = 100;

  explicit Foreign(int64_t* values) : ::tensorflow::TensorBuffer(values) {}

  size_t size() const override { return kSize * sizeof(int64_t); }
  ::tensorflow::TensorBuffer* root_buffer() override { return this; }
  bool OwnsMemory() const override { return false; }
  void FillAllocationDescription(AllocationDescription*) const override {}
};

// A session over
//
//   values, text --> put    take --> result = 10 * values, length = |text|
//
// where only `result` is on the GPU. The take and what uses it may be in a
// function, whose call is `result` and `length` then.
class StepDeliveryTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    GraphDef graph;
    const auto add = [&graph](NodeDefBuilder builder) {
      TF_CHECK_OK(builder.Finalize(graph.add_node()));
    };
    const auto placeholder = [](const std::string& name, DataType dtype) {
      return NodeDefBuilder(name, "Placeholder")
          .Attr("dtype", dtype)
          .Device("/device:CPU:0");
    };
    add(placeholder("values", DT_INT64));
    add(placeholder("text", DT_STRING));
    add(NodeDefBuilder("buffer", "StepBuffer")
            .Attr("stage", "step")
            .Attr("capacity", 2)
            .Device("/device:CPU:0"));
    // A handle cannot be fed, so a staging area keeps it from run to run.
    add(NodeDefBuilder("keep", "Stage")
            .Input(std::vector<NodeOut>{{"buffer", 0, DT_RESOURCE}})
            .Attr("shared_name", "handle")
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("index", "Const")
            .Attr("value", Tensor(0))
            .Attr("dtype", DT_INT32)
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("handle", "StagePeek")
            .Input("index", 0, DT_INT32)
            .Attr("dtypes", {DT_RESOURCE})
            .Attr("shared_name", "handle")
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("put", kStepPutOp)
            .Input("handle", 0, DT_RESOURCE)
            .Input(std::vector<NodeOut>{{"values", 0, DT_INT64},
                                        {"text", 0, DT_STRING}})
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("put_text", kStepPutOp)
            .Input("handle", 0, DT_RESOURCE)
            .Input(std::vector<NodeOut>{{"words", 0, DT_STRING}})
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("words", "Const")
            .Attr("value", Tensor(tstring("words")))
            .Attr("dtype", DT_STRING)
            .Device("/device:CPU:0"));
    add(NodeDefBuilder("on_cpu", kStepTakeOp)
            .Input("handle", 0, DT_RESOURCE)
            .Attr("dtypes", {DT_INT64, DT_STRING})
            .Device("/device:CPU:0"));
    NodeDefBuilder take("take", kStepTakeOp);
    take.Attr("dtypes", {DT_INT64, DT_STRING});
    if (GetParam()) {
      AddFunction(graph.mutable_library());
      NameAttrList function;
      function.set_name("rest");
      add(NodeDefBuilder("call", "StatefulPartitionedCall")
              .Input(std::vector<NodeOut>{{"handle", 0, DT_RESOURCE}})
              .Attr("Tout", {DT_INT64, DT_INT32})
              .Attr("f", function));
      add(NodeDefBuilder("result", "Identity").Input("call", 0, DT_INT64));
      add(NodeDefBuilder("length", "Identity").Input("call", 1, DT_INT32));
    } else {
      add(take.Input("handle", 0, DT_RESOURCE));
      add(NodeDefBuilder("result", "StagingTestLinear")
              .Input(std::vector<NodeOut>{{"take", 0, DT_INT64}})
              .Attr("scale", 10)
              .Device("/device:GPU:0"));
      add(NodeDefBuilder("length", "StringLength").Input("take", 1, DT_STRING));
    }
    session_.reset(NewSession(SessionOptions()));
    TF_CHECK_OK(session_->Create(graph));
    gpu_ = FakeGpu::Of(session_.get());
    copies_before_ = gpu_->counts().host_to_device.count;
    TF_CHECK_OK(session_->Run({}, {}, {"keep"}, nullptr));
  }

  static void AddFunction(FunctionDefLibrary* library) {
    *library->add_function() = FunctionDefHelper::Create(
        "rest", {"handle: resource"}, {"result: int64", "length: int32"}, {},
        {{{"take"},
          kStepTakeOp,
          {"handle"},
          {{"dtypes", DataTypeSlice{DT_INT64, DT_STRING}}}},
         {{"linear"},
          "StagingTestLinear",
          {"take:values:0"},
          {{"T", DT_INT64}, {"N", 1}, {"scale", 10}},
          {},
          "/device:GPU:0"},
         {{"length"}, "StringLength", {"take:values:1"}, {}}},
        {{"result", "linear:y:0"}, {"length", "length:output:0"}});
    library->mutable_function(0)->mutable_signature()->set_is_stateful(true);
  }

  void Put(int64_t value, const std::string& text) {
    Tensor values(DT_INT64, {4});
    values.flat<int64_t>().setConstant(value);
    TF_ASSERT_OK(
        session_->Run({{"values", values}, {"text", Tensor(tstring(text))}}, {},
                      {"put"}, nullptr));
  }

  void ExpectStep(int64_t value, int length) {
    std::vector<Tensor> outputs;
    TF_ASSERT_OK(session_->Run({}, {"result:0", "length:0"}, {}, &outputs));
    const auto result = outputs[0].flat<int64_t>();
    ASSERT_EQ(result.size(), 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(result(i), 10 * value);
    EXPECT_EQ(outputs[1].scalar<int32>()(), length);
  }

  BufferStats Stats() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"handle:0"}, {}, &outputs));
    const StatusOr<StepBuffer*> buffer =
        outputs[0].scalar<ResourceHandle>()().GetResource<StepBuffer>();
    TF_CHECK_OK(buffer.status());
    return (*buffer)->GetStats();
  }

  // A GPU counts for all sessions of the process.
  int64_t Copies() {
    return gpu_->counts().host_to_device.count - copies_before_;
  }

  std::unique_ptr<Session> session_;
  FakeGpu* gpu_ = nullptr;
  int64_t copies_before_ = 0;
};

TEST_P(StepDeliveryTest, FromTheFirstStepOnPutsCopy) {
  Put(1, "a");
  Put(2, "ab");
  EXPECT_EQ(Copies(), 0) << "nobody has asked for them";
  ExpectStep(1, 1);
  ExpectStep(2, 2);
  EXPECT_EQ(Copies(), 2);
  Put(3, "abc");
  EXPECT_EQ(Copies(), 3);
  ExpectStep(3, 3);
  EXPECT_EQ(Copies(), 3) << "the record was there";
}

TEST_P(StepDeliveryTest, ADeliveredRecordCountsWhereItIs) {
  Put(1, "a");
  EXPECT_EQ(Stats().devices_size(), 0);
  ExpectStep(1, 1);
  Put(2, "ab");
  const BufferStats stats = Stats();
  ASSERT_EQ(stats.devices_size(), 1);
  EXPECT_EQ(stats.devices(0), "GPU:0");
  EXPECT_EQ(stats.device_bytes(0), 4 * sizeof(int64_t));
}

TEST_P(StepDeliveryTest, APutGoesOnWhileTheGpuIsBusy) {
  Put(1, "a");
  ExpectStep(1, 1);
  Put(2, "ab");
  ExpectStep(2, 2);
  {
    StoppedFakeGpu stopped(gpu_);
    Put(3, "abc");
    Put(4, "abcd");
  }
  ExpectStep(3, 3);
  ExpectStep(4, 4);
}

TEST_P(StepDeliveryTest, AnEmptyTensorNeedsNoCopy) {
  Put(1, "a");
  ExpectStep(1, 1);
  TF_ASSERT_OK(session_->Run(
      {{"values", Tensor(DT_INT64, {0})}, {"text", Tensor(tstring("ab"))}}, {},
      {"put"}, nullptr));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session_->Run({}, {"result:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].NumElements(), 0);
}

TEST_P(StepDeliveryTest, AStepOnTheCpuGetsARecordOnTheGpu) {
  Put(1, "a");
  ExpectStep(1, 1);
  Put(2, "ab");
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session_->Run({}, {"on_cpu:0", "on_cpu:1"}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<int64_t>()(3), 2);
  EXPECT_EQ(outputs[1].scalar<tstring>()(), "ab");
}

TEST_P(StepDeliveryTest, AnotherRecordIsAnError) {
  Put(1, "a");
  ExpectStep(1, 1);
  TF_ASSERT_OK(session_->Run({}, {}, {"put_text"}, nullptr));
  std::vector<Tensor> outputs;
  const Status status = session_->Run({}, {"result:0"}, {}, &outputs);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
}

// The GPU has memory for one record, which the step gives back late.
TEST_P(StepDeliveryTest, WithoutMemoryStepsCopy) {
  const LimitedFakeGpu limited(gpu_, /*bytes=*/256);
  Put(1, "a");
  ExpectStep(1, 1);
  std::thread producer([this] {
    for (int64_t value = 2; value < 40; ++value) Put(value, "ab");
  });
  for (int64_t value = 2; value < 40; ++value) ExpectStep(value, 2);
  producer.join();
}

// The array may be filled anew while the record waits.
TEST_P(StepDeliveryTest, WithoutMemoryAnArrayOfPythonIsCopied) {
  Put(1, "a");
  ExpectStep(1, 1);
  // No free block has room for it.
  alignas(64) std::array<int64_t, Foreign::kSize> array;
  array.fill(2);
  const core::RefCountPtr<Foreign> foreign(new Foreign(array.data()));
  {
    const LimitedFakeGpu limited(gpu_, /*bytes=*/0);
    TF_ASSERT_OK(session_->Run(
        {{"values", Tensor(DT_INT64, {Foreign::kSize}, foreign.get())},
         {"text", Tensor(tstring("ab"))}},
        {}, {"put"}, nullptr));
  }
  array.fill(3);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session_->Run({}, {"result:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<int64_t>()(0), 20);
  EXPECT_EQ(outputs[0].flat<int64_t>()(Foreign::kSize - 1), 20);
}

TEST_P(StepDeliveryTest, AStepOnTheCpuGetsARecordWithoutMemory) {
  Put(1, "a");
  ExpectStep(1, 1);
  const LimitedFakeGpu limited(gpu_, /*bytes=*/0);
  Put(2, "ab");
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session_->Run({}, {"on_cpu:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<int64_t>()(3), 2);
}

INSTANTIATE_TEST_SUITE_P(InFunction, StepDeliveryTest, ::testing::Bool());

}  // namespace
}  // namespace staging
}  // namespace tensorflow
