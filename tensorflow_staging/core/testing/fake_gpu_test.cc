// SPDX-License-Identifier: Apache-2.0
//
// Tests that fake GPUs behave like real ones where tests rely on it.

#include "tensorflow_staging/core/testing/fake_gpu.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kSize = 1000;

class FakeGpuTest : public ::testing::Test {
 protected:
  ~FakeGpuTest() override { SetFakeGpuCount(1); }

  void NewSession(const SessionOptions& options = SessionOptions()) {
    session_.reset(tensorflow::NewSession(options));
    ASSERT_NE(session_, nullptr);
  }

  FakeGpu* Gpu(int index) { return FakeGpu::Of(session_.get(), index); }

  // Returns "GPU:<number> <physical GPU>" for each device.
  std::vector<std::string> Gpus() {
    std::vector<DeviceAttributes> devices;
    TF_CHECK_OK(session_->ListDevices(&devices));
    std::vector<std::string> gpus;
    for (const DeviceAttributes& device : devices) {
      if (device.device_type() != "GPU") continue;
      const std::string& name = device.name();
      gpus.push_back(name.substr(name.find("GPU:")) + " " +
                     device.physical_device_desc());
    }
    return gpus;
  }

  static Tensor OnHost(int32 value) {
    Tensor tensor(DT_INT32, {kSize});
    tensor.flat<int32>().setConstant(value);
    return tensor;
  }

  static Tensor OnGpu(FakeGpu* gpu) {
    return Tensor(gpu->GetAllocator({}), DT_INT32, {kSize});
  }

  static DeviceContext* Context(FakeGpu* gpu) {
    return gpu->tensorflow_accelerator_device_info()->default_context;
  }

  // Returns the first number of `tensor`, which is on `gpu`.
  static int32 ValueOn(FakeGpu* gpu, const Tensor& tensor) {
    Tensor host(DT_INT32, {kSize});
    TF_CHECK_OK(
        Context(gpu)->CopyDeviceTensorToCPUSync(&tensor, "", gpu, &host));
    return host.flat<int32>()(0);
  }

  std::unique_ptr<Session> session_;
};

TEST_F(FakeGpuTest, EachGpuIsADevice) {
  SetFakeGpuCount(4);
  NewSession();
  EXPECT_EQ(Gpus(), (std::vector<std::string>{
                        "GPU:0 device: 0, name: fake",
                        "GPU:1 device: 1, name: fake",
                        "GPU:2 device: 2, name: fake",
                        "GPU:3 device: 3, name: fake",
                    }));
}

TEST_F(FakeGpuTest, OrdinalsNumberVirtualDevicesAcrossGpus) {
  SetFakeGpuCount(2);
  NewSession(OptionsWithStreams(/*gpus=*/2, /*streams=*/2));
  EXPECT_EQ(Gpus(), (std::vector<std::string>{
                        "GPU:0 device: 0, name: fake",
                        "GPU:1 device: 1, name: fake",
                        "GPU:2 device: 0, name: fake",
                        "GPU:3 device: 1, name: fake",
                    }));
}

TEST_F(FakeGpuTest, VirtualDevicesOfOneGpuFollowEachOtherWithoutOrdinals) {
  SetFakeGpuCount(2);
  SessionOptions options = OptionsWithStreams(/*gpus=*/2, /*streams=*/2);
  for (auto& devices : *options.config.mutable_gpu_options()
                            ->mutable_experimental()
                            ->mutable_virtual_devices()) {
    devices.clear_device_ordinal();
  }
  NewSession(options);
  EXPECT_EQ(Gpus(), (std::vector<std::string>{
                        "GPU:0 device: 0, name: fake",
                        "GPU:1 device: 0, name: fake",
                        "GPU:2 device: 1, name: fake",
                        "GPU:3 device: 1, name: fake",
                    }));
}

TEST_F(FakeGpuTest, CopiesCrossTheBorderAndCount) {
  NewSession();
  FakeGpu* gpu = Gpu(0);
  const int64_t bytes = gpu->counts().host_to_device.bytes;
  const int64_t copies = gpu->counts().device_to_host.count;
  const Tensor host = OnHost(7);
  Tensor there = OnGpu(gpu);
  TF_CHECK_OK(Context(gpu)->CopyCPUTensorToDeviceSync(&host, gpu, &there));
  EXPECT_EQ(AcrossBorder(there.flat<int32>()(0)), 7);
  EXPECT_EQ(ValueOn(gpu, there), 7);
  EXPECT_EQ(gpu->counts().host_to_device.bytes - bytes, 4 * kSize);
  EXPECT_EQ(gpu->counts().device_to_host.count - copies, 1);
}

// Kernels on the CPU put what goes to a GPU into pinned memory.
TEST_F(FakeGpuTest, CopiesFromMemoryThatIsNotPinnedCount) {
  NewSession();
  FakeGpu* gpu = Gpu(0);
  const DeviceMgr* devices = nullptr;
  TF_CHECK_OK(session_->LocalDeviceManager(&devices));
  Device* cpu = nullptr;
  TF_CHECK_OK(devices->LookupDevice("/device:CPU:0", &cpu));
  AllocatorAttributes to_gpu;
  to_gpu.set_gpu_compatible(true);
  Tensor there = OnGpu(gpu);
  const auto copy = [&](const AllocatorAttributes& attributes) {
    const Tensor host(cpu->GetAllocator(attributes), DT_INT32, {kSize});
    stream_executor::DeviceMemoryBase target(there.data(), there.TotalBytes());
    gpu->compute_stream()->ThenMemcpy(&target, host.data(), host.TotalBytes());
    TF_CHECK_OK(gpu->Sync());
  };
  const int64_t before = gpu->counts().from_pageable.count;
  copy(to_gpu);
  EXPECT_EQ(gpu->counts().from_pageable.count - before, 0);
  copy({});
  EXPECT_EQ(gpu->counts().from_pageable.count - before, 1);
}

TEST_F(FakeGpuTest, GpusCopyToEachOther) {
  SetFakeGpuCount(2);
  NewSession();
  const Tensor host = OnHost(7);
  Tensor first = OnGpu(Gpu(0));
  Tensor second = OnGpu(Gpu(1));
  TF_CHECK_OK(
      Context(Gpu(0))->CopyCPUTensorToDeviceSync(&host, Gpu(0), &first));
  absl::Notification done;
  CopyTensor::ViaDMA(
      "", Context(Gpu(0)), Context(Gpu(1)), Gpu(0), Gpu(1), {}, {}, &first,
      &second, /*dev_to_dev_stream_index=*/0,
      [&](const Status& status) {
        TF_CHECK_OK(status);
        done.Notify();
      },
      /*sync_dst_compute=*/true);
  done.WaitForNotification();
  EXPECT_EQ(ValueOn(Gpu(1), second), 7);
}

// A copy waits for the stream that uses its target, unless it is told not to.
TEST_F(FakeGpuTest, CopiesToAStoppedGpuWaitIfAsked) {
  NewSession();
  FakeGpu* gpu = Gpu(0);
  const Tensor host = OnHost(7);
  Tensor there = OnGpu(gpu);
  const auto copy = [&](bool sync_dst_compute, absl::Notification* done) {
    Context(gpu)->CopyCPUTensorToDevice(
        &host, gpu, &there,
        [done](const Status& status) {
          TF_CHECK_OK(status);
          done->Notify();
        },
        sync_dst_compute);
  };
  StoppedFakeGpu stopped(gpu);
  absl::Notification at_once;
  copy(/*sync_dst_compute=*/false, &at_once);
  at_once.WaitForNotification();
  const int64_t waits = gpu->counts().copy_waits;
  absl::Notification later;
  copy(/*sync_dst_compute=*/true, &later);
  EXPECT_EQ(gpu->counts().copy_waits - waits, 1);
  EXPECT_FALSE(later.HasBeenNotified());
  stopped.Release();
  later.WaitForNotification();
}

// The allocator gives memory to the next tensor while a kernel that reads it is
// still queued. Only tasks of the same stream are safe from each other.
TEST_F(FakeGpuTest, FreedMemoryIsUsedWhileKernelsAreQueued) {
  NewSession();
  FakeGpu* gpu = Gpu(0);
  StoppedFakeGpu stopped(gpu);
  const void* first = OnGpu(gpu).data();
  EXPECT_EQ(OnGpu(gpu).data(), first);
}

TEST_F(FakeGpuTest, KernelsRunAfterTheirOpsAndARunSynchronizes) {
  GraphDef graph;
  const auto add = [&graph](NodeDefBuilder builder) {
    TF_CHECK_OK(builder.Finalize(graph.add_node()));
  };
  add(NodeDefBuilder("x", "Const")
          .Attr("dtype", DT_INT32)
          .Attr("value", OnHost(7))
          .Device("/device:CPU:0"));
  add(NodeDefBuilder("upload", "StagingTestUpload")
          .Input("x", 0, DT_INT32)
          .Device("/device:GPU:0"));
  add(NodeDefBuilder("y", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"upload", 0, DT_INT32}})
          .Attr("scale", 10)
          .Attr("offset", 1)
          .Device("/device:GPU:0"));
  NewSession();
  TF_CHECK_OK(session_->Create(graph));
  const int64_t kernels = Gpu(0)->counts().kernels;
  const int64_t syncs = Gpu(0)->counts().syncs;
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session_->Run({}, {"y"}, {}, &outputs));
  EXPECT_EQ(outputs[0].flat<int32>()(kSize - 1), 71);
  EXPECT_EQ(Gpu(0)->counts().kernels - kernels, 2);
  EXPECT_EQ(Gpu(0)->counts().syncs - syncs, 1);
}

// EventMgr records its events repeatedly.
TEST_F(FakeGpuTest, EventsCanBeRecordedRepeatedly) {
  NewSession();
  FakeGpu* gpu = Gpu(0);
  stream_executor::Event event(FakeGpuExecutor::Get(0));
  ASSERT_TRUE(event.Init());
  gpu->compute_stream()->ThenRecordEvent(&event);
  TF_CHECK_OK(gpu->Sync());
  EXPECT_EQ(event.PollForStatus(), stream_executor::Event::Status::kComplete);
  StoppedFakeGpu stopped(gpu);
  gpu->compute_stream()->ThenRecordEvent(&event);
  EXPECT_EQ(event.PollForStatus(), stream_executor::Event::Status::kPending);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
