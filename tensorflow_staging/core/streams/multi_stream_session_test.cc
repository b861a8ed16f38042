// SPDX-License-Identifier: Apache-2.0
//
// Tests sessions whose GPUs have several streams.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

SessionOptions WithStreams(int count) {
  SessionOptions options;
  UseMultiStream(count, &options);
  return options;
}

SessionOptions WithShares(const std::vector<float>& memory_shares) {
  SessionOptions options;
  UseMultiStream(memory_shares.size(), &options, memory_shares);
  return options;
}

SessionOptions WithoutStreams() { return SessionOptions(); }

class MultiStreamSessionTest : public ::testing::Test {
 protected:
  ~MultiStreamSessionTest() override { SetFakeGpuCount(1); }

  // Replaces the session, if that is possible.
  Status Create(const SessionOptions& options) {
    session_.reset();
    Session* session = nullptr;
    TF_RETURN_IF_ERROR(NewSession(options, &session));
    session_.reset(session);
    return OkStatus();
  }

  // Expects that a session is refused as one that does not fit earlier ones.
  void ExpectDoesNotFit(const SessionOptions& options,
                        const ::testing::Matcher<std::string>& message) {
    const Status status = Create(options);
    EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), message);
  }

  std::vector<DeviceAttributes> Gpus() {
    std::vector<DeviceAttributes> devices;
    TF_CHECK_OK(session_->ListDevices(&devices));
    std::vector<DeviceAttributes> gpus;
    for (const DeviceAttributes& device : devices) {
      if (device.device_type() == "GPU") gpus.push_back(device);
    }
    return gpus;
  }

  // Returns "GPU:<number> <physical GPU>" for each device.
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const DeviceAttributes& device : Gpus()) {
      names.push_back(
          absl::StrCat(device.name().substr(device.name().find("GPU:")), " ",
                       device.physical_device_desc()));
    }
    return names;
  }

  // In MB.
  std::vector<int64_t> MemoryLimits() {
    std::vector<int64_t> limits;
    for (const DeviceAttributes& device : Gpus()) {
      limits.push_back(device.memory_limit() >> 20);
    }
    return limits;
  }

  std::unique_ptr<Session> session_;
};

TEST_F(MultiStreamSessionTest, StreamsAreDevicesAfterThoseOfTheGpus) {
  for (int gpus = 1; gpus <= 4; ++gpus) {
    SetFakeGpuCount(gpus);
    ASSERT_EQ(Create(WithStreams(3)), OkStatus());
    std::vector<std::string> expected;
    for (int device = 0; device < 3 * gpus; ++device) {
      expected.push_back(absl::StrCat(
          "GPU:", device, " device: ", device % gpus, ", name: fake"));
    }
    EXPECT_EQ(Names(), expected);
  }
}

TEST_F(MultiStreamSessionTest, EachDeviceHasAStreamOfItsOwn) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  std::set<void*> streams;
  std::set<void*> allocators;
  for (int device = 0; device < 4; ++device) {
    FakeGpu* gpu = FakeGpu::Of(session_.get(), device);
    streams.insert(gpu->compute_stream());
    allocators.insert(gpu->GetAllocator({}));
  }
  EXPECT_THAT(streams, SizeIs(4));
  EXPECT_THAT(allocators, SizeIs(4));
}

TEST_F(MultiStreamSessionTest, AStreamRunsWhileAnotherOfTheSameGpuIsStopped) {
  GraphDef graph;
  for (int device = 0; device < 2; ++device) {
    Tensor seven(DT_INT32, {});
    seven.scalar<int32>()() = 7;
    const std::string x = absl::StrCat("x", device);
    TF_CHECK_OK(NodeDefBuilder(x, "Const")
                    .Attr("dtype", DT_INT32)
                    .Attr("value", seven)
                    .Device("/device:CPU:0")
                    .Finalize(graph.add_node()));
    TF_CHECK_OK(NodeDefBuilder(absl::StrCat("y", device), "StagingTestUpload")
                    .Input(x, 0, DT_INT32)
                    .Device(absl::StrCat("/gpu:", device))
                    .Finalize(graph.add_node()));
  }
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  TF_CHECK_OK(session_->Create(graph));
  StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), 0));
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session_->Run({}, {"y1"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int32>()(), 7);
}

TEST_F(MultiStreamSessionTest, VisibleDevicesAndDeviceCountChooseTheGpus) {
  SetFakeGpuCount(4);
  SessionOptions options = WithStreams(2);
  options.config.mutable_gpu_options()->set_visible_device_list("3,1,2");
  (*options.config.mutable_device_count())["GPU"] = 2;
  ASSERT_EQ(Create(options), OkStatus());
  EXPECT_THAT(Names(), ElementsAre("GPU:0 device: 3, name: fake",
                                   "GPU:1 device: 1, name: fake",
                                   "GPU:2 device: 3, name: fake",
                                   "GPU:3 device: 1, name: fake"));
}

TEST_F(MultiStreamSessionTest, StreamsHaveEqualMemory) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  // An eighth of 256 MB is kept back.
  EXPECT_THAT(MemoryLimits(), ElementsAre(224, 224, 224, 224));
}

TEST_F(MultiStreamSessionTest, StreamsDivideAFractionOfTheMemory) {
  SetFakeGpuCount(2);
  SessionOptions options = WithStreams(2);
  options.config.mutable_gpu_options()->set_per_process_gpu_memory_fraction(
      0.5);
  ASSERT_EQ(Create(options), OkStatus());
  EXPECT_THAT(MemoryLimits(), ElementsAre(64, 64, 64, 64));
}

TEST_F(MultiStreamSessionTest, SharesDivideTheMemory) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithShares({3, 1})), OkStatus());
  EXPECT_THAT(MemoryLimits(), ElementsAre(168, 168, 56, 56));
  ExpectDoesNotFit(WithShares({1, 1}),
                   AllOf(HasSubstr("divided into shares of 0.5, 0.5, but"),
                         HasSubstr("divided into shares of 0.75, 0.25."),
                         HasSubstr("use the same multi_stream_num, "
                                   "memory_shares")));
  EXPECT_EQ(Create(WithShares({6, 2})), OkStatus());
}

TEST_F(MultiStreamSessionTest, MistakesAreReportedBeforeADeviceExists) {
  SessionOptions options = WithStreams(2);
  options.config.mutable_gpu_options()
      ->mutable_experimental()
      ->add_virtual_devices();
  EXPECT_TRUE(errors::IsInvalidArgument(Create(options)));
  EXPECT_TRUE(errors::IsInvalidArgument(Create(WithStreams(0))));
  // Each stream would have 11 MB.
  options = WithStreams(20);
  options.config.mutable_gpu_options()->set_per_process_gpu_memory_fraction(1);
  EXPECT_TRUE(errors::IsResourceExhausted(Create(options)));
  // None of them has determined anything.
  EXPECT_EQ(Create(WithStreams(3)), OkStatus());
}

TEST_F(MultiStreamSessionTest, SessionsOfOneProcessMayAgree) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  EXPECT_THAT(Names(), SizeIs(4));
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  EXPECT_THAT(Names(), SizeIs(4));
  ASSERT_EQ(Create(WithoutStreams()), OkStatus());
  EXPECT_THAT(Names(), ElementsAre("GPU:0 device: 0, name: fake",
                                   "GPU:1 device: 1, name: fake"));
}

TEST_F(MultiStreamSessionTest, StreamsBesideAnEarlierStreamAreAWarning) {
  ASSERT_EQ(Create(WithoutStreams()), OkStatus());
  Warnings warnings("gpu_options");
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  EXPECT_THAT(MemoryLimits(), ElementsAre(256, 224));
  EXPECT_THAT(warnings.Texts(),
              ElementsAre(HasSubstr("memory of stream 0 stays")));
}

TEST_F(MultiStreamSessionTest, SessionsThatDisagreeAreRefused) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithStreams(2)), OkStatus());
  ExpectDoesNotFit(
      WithStreams(3),
      AllOf(HasSubstr("This session asks for 3 streams on each of the GPUs "
                      "0,1, but an earlier session of this process has 2 "
                      "streams on each of the GPUs 0,1."),
            HasSubstr("use the same multi_stream_num")));
  SessionOptions options = WithStreams(2);
  options.config.mutable_gpu_options()->set_visible_device_list("1,0");
  ExpectDoesNotFit(options, HasSubstr("each of the GPUs 1,0, but"));
  options = WithStreams(2);
  options.config.mutable_gpu_options()->set_per_process_gpu_memory_fraction(
      0.5);
  ExpectDoesNotFit(options, HasSubstr("with the memory fraction 0.5, but"));
  EXPECT_EQ(Create(WithStreams(2)), OkStatus());
}

// TensorFlow keeps which GPU a number of a device belongs to.
TEST_F(MultiStreamSessionTest, StreamsCannotTakeTheNumbersOfOtherGpus) {
  SetFakeGpuCount(2);
  ASSERT_EQ(Create(WithoutStreams()), OkStatus());
  SessionOptions options = WithStreams(2);
  (*options.config.mutable_device_count())["GPU"] = 1;
  ExpectDoesNotFit(
      options,
      AllOf(HasSubstr("its device GPU:1 would be stream 1 of GPU 0. But an "
                      "earlier session of this process has made GPU:1 a device "
                      "of GPU 1."),
            HasSubstr("use the same visible_device_list and device_count")));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
