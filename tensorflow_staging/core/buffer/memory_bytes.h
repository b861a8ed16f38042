// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_MEMORY_BYTES_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_MEMORY_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"

namespace tensorflow {
namespace staging {

// How many bytes tensors take in host memory, and in that of each device. Every Put
// counts its record, so what is on the host alone, or on one device beside it,
// takes no memory to count.
struct MemoryBytes {
  struct OfDevice {
    std::string device;
    int64_t bytes;
  };

  int64_t on_host = 0;
  // In the order of their names.
  absl::InlinedVector<OfDevice, 1> on_devices = {};

  int64_t On(const std::string& device) const {
    const auto found = absl::c_find_if(
        on_devices,
        [&device](const OfDevice& each) { return each.device == device; });
    return found == on_devices.end() ? 0 : found->bytes;
  }
  int64_t& On(const std::string& device) {
    const auto at = absl::c_find_if(
        on_devices,
        [&device](const OfDevice& each) { return each.device >= device; });
    if (at != on_devices.end() && at->device == device) return at->bytes;
    return on_devices.insert(at, {device, 0})->bytes;
  }

  int64_t Total() const {
    int64_t total = on_host;
    for (const OfDevice& of_device : on_devices) total += of_device.bytes;
    return total;
  }

  void Add(const MemoryBytes& other) { Add(other, 1); }
  void Subtract(const MemoryBytes& other) { Add(other, -1); }

 private:
  void Add(const MemoryBytes& other, int sign) {
    on_host += sign * other.on_host;
    for (const OfDevice& of_device : other.on_devices) {
      On(of_device.device) += sign * of_device.bytes;
    }
  }
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_MEMORY_BYTES_H_
