// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/session_device.h"

#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

Status FindSessionDevice(const OpKernelContext& ctx, const char* attribute,
                         const std::string& device, Device** found) {
  const FunctionLibraryRuntime* library = ctx.function_library();
  if (library != nullptr && library->device_mgr() != nullptr &&
      library->device_mgr()->LookupDevice(device, found).ok()) {
    return OkStatus();
  }
  return errors::InvalidArgument(attribute, " of ", ctx.op_kernel().name(),
                                 " is '", device,
                                 "', which is no device of this session.");
}

}  // namespace staging
}  // namespace tensorflow
