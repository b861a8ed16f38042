// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/device_memory.h"

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

AllocatorAttributes PinnedMemory() {
  AllocatorAttributes pinned;
  pinned.set_on_host(true);
  pinned.set_gpu_compatible(true);
  return pinned;
}

Status AllocateOn(DeviceBase* device, AllocatorAttributes where, DataType dtype,
                  const TensorShape& shape, Tensor* tensor,
                  bool after_waiting) {
  Allocator* const allocator = device->GetAllocator(where);
  AllocationAttributes how;
  how.retry_on_failure = after_waiting;
  *tensor = Tensor(allocator, dtype, shape, how);
  if (tensor->IsInitialized()) return OkStatus();
  return errors::ResourceExhausted(
      device->name(), " has no ", shape.num_elements() * DataTypeSize(dtype),
      " bytes for a record (allocator ", allocator->Name(), ").");
}

}  // namespace staging
}  // namespace tensorflow
