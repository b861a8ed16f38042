// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_GPU_DEVICES_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_GPU_DEVICES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace staging {

// Reads the GPU devices of the nodes of one placed graph, in a session with
// `gpus` GPUs: stream `k` of GPU `p` is the device with number k * gpus + p.
class GpuDevices {
 public:
  explicit GpuDevices(int gpus) : gpus_(gpus) {}

  // Returns the number of the device of `node`, or -1 if it is not a GPU.
  int Number(const Node& node) {
    const auto [it, is_new] =
        numbers_.try_emplace(node.assigned_device_name_index(), -1);
    DeviceNameUtils::ParsedName name;
    if (is_new &&
        DeviceNameUtils::ParseFullName(node.assigned_device_name(), &name) &&
        name.type == DEVICE_GPU && name.has_id) {
      it->second = name.id;
    }
    return it->second;
  }

  // Returns whether two numbers are those of different streams of one GPU.
  bool AreStreamsOfOneGpu(int a, int b) const {
    return a >= 0 && b >= 0 && a != b && a % gpus_ == b % gpus_;
  }

  // Returns the name of the device of `stream` on the GPU of `node`, which is
  // on stream 0.
  std::string OfStream(int stream, const Node& node) const {
    DeviceNameUtils::ParsedName name;
    DeviceNameUtils::ParseFullName(node.assigned_device_name(), &name);
    name.id += stream * gpus_;
    return DeviceNameUtils::ParsedNameToString(name);
  }

 private:
  const int gpus_;
  // By index of the device's name.
  absl::flat_hash_map<int, int> numbers_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_GPU_DEVICES_H_
