// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_SESSION_DEVICE_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_SESSION_DEVICE_H_

#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Anybody can write a graph with an attribute that names a device.

// Sets `*found` to the device `device`, the value of attribute `attribute` of a
// kernel, of the session that runs the kernel. Returns INVALID_ARGUMENT if the
// session has no such device in the process of the kernel.
Status FindSessionDevice(const OpKernelContext& ctx, const char* attribute,
                         const std::string& device, Device** found);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_SESSION_DEVICE_H_
