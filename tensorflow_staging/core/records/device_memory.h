// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_MEMORY_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_MEMORY_H_

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The attributes of host memory from which a GPU copies without a detour.
AllocatorAttributes PinnedMemory();

// Sets `*tensor` to a new one in the memory of `device` that `where` describes.
// Unlike OpKernelContext::allocate_temp, this needs no kernel on that device.
// Returns RESOURCE_EXHAUSTED, with the allocator's name, if it has no room: at
// once, or `after_waiting` for up to ten seconds, as TensorFlow's allocators do.
Status AllocateOn(DeviceBase* device, AllocatorAttributes where, DataType dtype,
                  const TensorShape& shape, Tensor* tensor,
                  bool after_waiting = true);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_MEMORY_H_
