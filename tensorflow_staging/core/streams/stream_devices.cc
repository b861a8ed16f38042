// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_devices.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/tsl/framework/device_id_utils.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

// What the libraries of CUDA need besides the tensors grows with the GPU, but
// not without bound.
constexpr int64_t kLargestReserve = 1800 * kMegabyte;
constexpr int kReserveDivisor = 8;

// A device with less memory cannot run anything useful.
constexpr int64_t kLeastMegabytes = 32;

// CUDA's priorities: a lower number goes first, and 0 is the default. Each GPU
// that TensorFlow supports has -1.
constexpr int kStepPriority = -1;
constexpr int kOtherPriority = 0;

// Returns how much memory of `gpu` all streams together may use.
int64_t UsableBytes(const PhysicalGpu& gpu, const GPUOptions& options) {
  const int64_t usable =
      gpu.free_bytes -
      std::min(kLargestReserve, gpu.free_bytes / kReserveDivisor);
  const double fraction = options.per_process_gpu_memory_fraction();
  if (fraction == 0) return usable;
  int64_t part = static_cast<int64_t>(gpu.total_bytes * fraction);
  // Unified memory may be larger than the GPU's.
  if (fraction <= 1 && !options.experimental().use_unified_memory()) {
    part = std::min(part, usable);
  }
  return part;
}

// Returns the memory limit of each stream of `gpu`.
std::vector<int64_t> LimitsInMegabytes(int streams,
                                       const std::vector<double>& shares,
                                       const PhysicalGpu& gpu,
                                       const GPUOptions& options) {
  const int64_t megabytes = UsableBytes(gpu, options) / kMegabyte;
  std::vector<int64_t> limits;
  for (const double share : shares) limits.push_back(megabytes * share);
  if (limits.empty()) {
    // Allocators that grow only share what the GPU has. A small fixed part
    // could be too small for the variables on a stream.
    const bool grow = options.per_process_gpu_memory_fraction() == 0;
    limits.assign(streams, grow ? megabytes : megabytes / streams);
  }
  return limits;
}

}  // namespace

Status ChooseGpus(const ConfigProto& config, const std::vector<int>& physical,
                  std::vector<int>* chosen) {
  chosen->clear();
  const GPUOptions& options = config.gpu_options();
  const int own = options.experimental().virtual_devices_size();
  if (own > 0) {
    return errors::InvalidArgument(
        "gpu_options.experimental.virtual_devices has ", own,
        own == 1 ? " entry" : " entries",
        ", and rewrite_options.use_multi_stream is ON. Each GPU stream is a "
        "virtual device, so only one of the two can define them: remove the "
        "entries, or turn use_multi_stream off.");
  }
  // TensorFlow takes a negative number for no limit.
  size_t count = physical.size();
  const auto limit = config.device_count().find("GPU");
  if (limit != config.device_count().end() && limit->second >= 0) {
    count = std::min<size_t>(count, limit->second);
  }
  if (count == 0) return OkStatus();
  const std::string& visible = options.visible_device_list();
  if (visible.empty()) {
    *chosen = physical;
  } else {
    std::vector<tsl::PlatformDeviceId> ids;
    TF_RETURN_IF_ERROR(tsl::ParseVisibleDeviceList(
        visible, *absl::c_max_element(physical) + 1, &ids));
    for (const tsl::PlatformDeviceId id : ids) {
      if (!absl::c_linear_search(physical, id.value())) {
        return errors::InvalidArgument(
            "gpu_options.visible_device_list is '", visible,
            "', but TensorFlow cannot use GPU ", id.value(),
            "; it can use: ", absl::StrJoin(physical, ","), ".");
      }
      chosen->push_back(id.value());
    }
  }
  if (chosen->size() > count) chosen->resize(count);
  return OkStatus();
}

Status DivideGpus(int streams, const std::vector<double>& memory_shares,
                  const std::vector<PhysicalGpu>& gpus, GPUOptions* options) {
  const double fraction = options->per_process_gpu_memory_fraction();
  if (!(fraction >= 0)) {
    return errors::InvalidArgument(
        "gpu_options.per_process_gpu_memory_fraction is ", fraction,
        "; it must not be negative.");
  }
  const int gpu_count = gpus.size();
  std::vector<int> ids;
  GPUOptions::Experimental* experimental = options->mutable_experimental();
  for (const PhysicalGpu& gpu : gpus) {
    const std::vector<int64_t> limits =
        LimitsInMegabytes(streams, memory_shares, gpu, *options);
    const auto least = absl::c_min_element(limits);
    if (*least < kLeastMegabytes) {
      return errors::ResourceExhausted(
          "GPU ", gpu.id, " has ", gpu.free_bytes / kMegabyte, " of ",
          gpu.total_bytes / kMegabyte, " MB free, so stream ",
          least - limits.begin(), " of its ", streams, " streams could use ",
          *least, " MB; it needs ", kLeastMegabytes,
          " MB. If an earlier session of this process holds the memory, set "
          "gpu_options.allow_growth for it; if another process does, let it "
          "end. Otherwise lower multi_stream_num, or raise "
          "gpu_options.per_process_gpu_memory_fraction or the stream's part of "
          "memory_shares.");
    }
    auto* devices = experimental->add_virtual_devices();
    const int first = ids.size() * streams;
    for (int stream = 0; stream < streams; ++stream) {
      devices->add_memory_limit_mb(limits[stream]);
      devices->add_device_ordinal(stream);
      // TensorFlow looks up a device's priority by the number of the device, in
      // the lists of all GPUs one after the other. But devices are numbered by
      // ordinal, which is another order.
      const int device = first + stream;
      devices->add_priority(device < gpu_count ? kStepPriority
                                               : kOtherPriority);
    }
    ids.push_back(gpu.id);
  }
  // With virtual devices, TensorFlow's device_count does not choose among GPUs,
  // and a fraction is an error.
  options->set_visible_device_list(absl::StrJoin(ids, ","));
  options->clear_per_process_gpu_memory_fraction();
  if (fraction == 0) options->set_allow_growth(true);
  if (fraction > 1) experimental->set_use_unified_memory(true);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
