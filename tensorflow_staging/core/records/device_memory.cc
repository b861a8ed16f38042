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
                  const TensorShape& shape, Tensor* tensor) {
  Allocator* const allocator = device->GetAllocator(where);
  *tensor = Tensor(allocator, dtype, shape);
  if (tensor->IsInitialized()) return OkStatus();
  return errors::ResourceExhausted("Allocator ", allocator->Name(), " has no ",
                                   shape.num_elements() * DataTypeSize(dtype),
                                   " bytes for a record.");
}

}  // namespace staging
}  // namespace tensorflow
