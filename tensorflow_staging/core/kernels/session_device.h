// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_SESSION_DEVICE_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_SESSION_DEVICE_H_

#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Returns the device `name` of the session that runs a kernel, in the process
// of that kernel; null if there is none.
inline Device* SessionDevice(const OpKernelContext& ctx,
                             const std::string& name) {
  const FunctionLibraryRuntime* library = ctx.function_library();
  Device* device = nullptr;
  if (library == nullptr || library->device_mgr() == nullptr ||
      !library->device_mgr()->LookupDevice(name, &device).ok()) {
    return nullptr;
  }
  return device;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_SESSION_DEVICE_H_
