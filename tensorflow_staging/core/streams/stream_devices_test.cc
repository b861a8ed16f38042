// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMegabyte = int64_t{1} << 20;

// A GPU with `free` of 16000 MB.
PhysicalGpu Gpu(int id, int64_t free = 16000) {
  return {id, free * kMegabyte, 16000 * kMegabyte};
}

// Returns the GPUs that a session chooses of GPUs 0, 1, 2 and 4.
std::vector<int> Chosen(const ConfigProto& config) {
  std::vector<int> chosen;
  EXPECT_EQ(ChooseGpus(config, {0, 1, 2, 4}, &chosen), OkStatus());
  return chosen;
}

ConfigProto VisibleGpus(const std::string& list) {
  ConfigProto config;
  config.mutable_gpu_options()->set_visible_device_list(list);
  return config;
}

TEST(ChooseGpusTest, OptionsChooseAmongTheGpus) {
  EXPECT_THAT(Chosen(ConfigProto()), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(Chosen(VisibleGpus("4,0")), ElementsAre(4, 0));
  ConfigProto config = VisibleGpus("4,0,2");
  (*config.mutable_device_count())["GPU"] = 2;
  EXPECT_THAT(Chosen(config), ElementsAre(4, 0));
  config.mutable_gpu_options()->clear_visible_device_list();
  EXPECT_THAT(Chosen(config), ElementsAre(0, 1));
  (*config.mutable_device_count())["GPU"] = 9;
  EXPECT_THAT(Chosen(config), ElementsAre(0, 1, 2, 4));
  (*config.mutable_device_count())["GPU"] = 0;
  EXPECT_THAT(Chosen(config), IsEmpty());
}

TEST(ChooseGpusTest, AListOfAnythingElseIsRefused) {
  for (const char* list : {"3", "5", "-1", "zero", "1,1", "0,,1"}) {
    std::vector<int> chosen;
    const Status status = ChooseGpus(VisibleGpus(list), {0, 1, 2, 4}, &chosen);
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << list << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("visible_device_list"));
  }
}

// Also on a machine without a GPU.
TEST(ChooseGpusTest, TheUsersVirtualDevicesAreRefused) {
  ConfigProto config;
  config.mutable_gpu_options()
      ->mutable_experimental()
      ->add_virtual_devices()
      ->add_memory_limit_mb(1000);
  std::vector<int> chosen;
  const Status status = ChooseGpus(config, {}, &chosen);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("virtual_devices has 1 entry"),
                    HasSubstr("use_multi_stream is ON"),
                    HasSubstr("remove the entries")));
}

// For each device, in the order in which TensorFlow numbers them, its GPU and
// its index among those of the GPU.
std::vector<std::pair<int, int>> NumberedDevices(const GPUOptions& options) {
  std::vector<std::tuple<int, int, int>> devices;
  const auto& gpus = options.experimental().virtual_devices();
  for (int gpu = 0; gpu < gpus.size(); ++gpu) {
    for (int i = 0; i < gpus[gpu].device_ordinal_size(); ++i) {
      devices.emplace_back(gpus[gpu].device_ordinal(i), gpu, i);
    }
  }
  std::sort(devices.begin(), devices.end());
  std::vector<std::pair<int, int>> numbered;
  for (const auto& [ordinal, gpu, index] : devices) {
    numbered.emplace_back(gpu, index);
  }
  return numbered;
}

// Returns the priority that TensorFlow finds for a device: the entry with the
// device's number of the lists of all GPUs, one after the other.
int Priority(const GPUOptions& options, int device) {
  std::vector<int> all;
  for (const auto& gpu : options.experimental().virtual_devices()) {
    all.insert(all.end(), gpu.priority().begin(), gpu.priority().end());
  }
  return all.at(device);
}

TEST(DivideGpusTest, NumbersOfStream0AreThoseOfTheGpus) {
  for (int gpu_count = 1; gpu_count <= 4; ++gpu_count) {
    for (int streams = 2; streams <= 4; ++streams) {
      std::vector<PhysicalGpu> gpus;
      for (int i = 0; i < gpu_count; ++i) gpus.push_back(Gpu(i));
      GPUOptions options;
      ASSERT_EQ(DivideGpus(streams, {}, gpus, &options), OkStatus());
      const auto devices = NumberedDevices(options);
      ASSERT_EQ(static_cast<int>(devices.size()), gpu_count * streams);
      for (int stream = 0; stream < streams; ++stream) {
        for (int gpu = 0; gpu < gpu_count; ++gpu) {
          const int device = stream * gpu_count + gpu;
          EXPECT_EQ(devices[device], std::make_pair(gpu, stream));
          EXPECT_EQ(Priority(options, device), stream == 0 ? -1 : 0);
        }
      }
    }
  }
}

// TensorFlow wants as many entries of virtual_devices as there are GPUs.
TEST(DivideGpusTest, TheChosenGpusAreTheVisibleOnes) {
  GPUOptions options;
  ASSERT_EQ(DivideGpus(2, {}, {Gpu(4), Gpu(0)}, &options), OkStatus());
  EXPECT_EQ(options.visible_device_list(), "4,0");
  EXPECT_EQ(options.experimental().virtual_devices_size(), 2);
}

// Returns the memory limits of the streams of one GPU.
std::vector<float> Limits(const GPUOptions& options) {
  const auto& limits =
      options.experimental().virtual_devices(0).memory_limit_mb();
  return {limits.begin(), limits.end()};
}

TEST(DivideGpusTest, EachStreamMayGrowUntilTheGpuIsFull) {
  GPUOptions options;
  ASSERT_EQ(DivideGpus(3, {}, {Gpu(0, /*free=*/8000)}, &options), OkStatus());
  // An eighth is for the libraries of CUDA.
  EXPECT_THAT(Limits(options), ElementsAre(7000, 7000, 7000));
  EXPECT_TRUE(options.allow_growth());
  EXPECT_FALSE(options.experimental().use_unified_memory());
}

TEST(DivideGpusTest, ALargeGpuKeepsBackNoMoreThanASmallOne) {
  GPUOptions options;
  ASSERT_EQ(DivideGpus(2, {}, {{0, 140000 * kMegabyte, 141000 * kMegabyte}},
                       &options),
            OkStatus());
  EXPECT_THAT(Limits(options), ElementsAre(138200, 138200));
}

TEST(DivideGpusTest, AFractionIsDividedEqually) {
  GPUOptions options;
  options.set_per_process_gpu_memory_fraction(0.5);
  ASSERT_EQ(DivideGpus(4, {}, {Gpu(0)}, &options), OkStatus());
  EXPECT_THAT(Limits(options), ElementsAre(2000, 2000, 2000, 2000));
  // With virtual devices, a fraction is an error in TensorFlow.
  EXPECT_EQ(options.per_process_gpu_memory_fraction(), 0);
  EXPECT_FALSE(options.allow_growth());
}

TEST(DivideGpusTest, SharesDivideTheMemory) {
  GPUOptions growing;
  ASSERT_EQ(DivideGpus(2, {0.75, 0.25}, {Gpu(0, /*free=*/8000)}, &growing),
            OkStatus());
  EXPECT_THAT(Limits(growing), ElementsAre(5250, 1750));
  EXPECT_TRUE(growing.allow_growth());
  GPUOptions fixed;
  fixed.set_per_process_gpu_memory_fraction(0.5);
  ASSERT_EQ(DivideGpus(3, {0.5, 0.375, 0.125}, {Gpu(0)}, &fixed), OkStatus());
  EXPECT_THAT(Limits(fixed), ElementsAre(4000, 3000, 1000));
  EXPECT_FALSE(fixed.allow_growth());
}

TEST(DivideGpusTest, AShareMayBeTooSmall) {
  GPUOptions options;
  const Status status =
      DivideGpus(2, {0.999, 0.001}, {Gpu(0), Gpu(3)}, &options);
  EXPECT_TRUE(errors::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("so stream 1 of its 2 streams could use 14 MB"),
                    HasSubstr("memory_shares")));
}

TEST(DivideGpusTest, AFractionAboveTheFreeMemoryIsCut) {
  GPUOptions options;
  options.set_per_process_gpu_memory_fraction(1);
  options.set_allow_growth(true);
  ASSERT_EQ(DivideGpus(2, {}, {Gpu(0, /*free=*/8000)}, &options), OkStatus());
  EXPECT_THAT(Limits(options), ElementsAre(3500, 3500));
  EXPECT_TRUE(options.allow_growth());
}

TEST(DivideGpusTest, AFractionAboveOneNeedsUnifiedMemory) {
  GPUOptions options;
  options.set_per_process_gpu_memory_fraction(2);
  ASSERT_EQ(DivideGpus(2, {}, {Gpu(0)}, &options), OkStatus());
  EXPECT_THAT(Limits(options), ElementsAre(16000, 16000));
  EXPECT_TRUE(options.experimental().use_unified_memory());
}

TEST(DivideGpusTest, TooLittleMemoryIsReported) {
  GPUOptions options;
  options.set_per_process_gpu_memory_fraction(0.01);
  const Status status = DivideGpus(8, {}, {Gpu(0), Gpu(3)}, &options);
  EXPECT_TRUE(errors::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("GPU 0 has 16000 of 16000 MB free, so stream 0 "
                              "of its 8 streams could use 20 MB"),
                    HasSubstr("lower multi_stream_num")));
  GPUOptions growing;
  const Status full =
      DivideGpus(2, {}, {Gpu(0), Gpu(3, /*free=*/30)}, &growing);
  EXPECT_TRUE(errors::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("GPU 3 has 30 of 16000 MB free"),
                    HasSubstr("set gpu_options.allow_growth")));
}

TEST(DivideGpusTest, ANegativeFractionIsRefused) {
  GPUOptions options;
  options.set_per_process_gpu_memory_fraction(-0.5);
  const Status status = DivideGpus(2, {}, {Gpu(0)}, &options);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("per_process_gpu_memory_fraction is -0.5"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
