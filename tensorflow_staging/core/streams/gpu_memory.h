// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_GPU_MEMORY_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_GPU_MEMORY_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/streams/stream_devices.h"

namespace tensorflow {
namespace staging {

// Asks the driver for the memory of GPU `gpu->id`.
Status ReadGpuMemory(PhysicalGpu* gpu);

// Replaces the driver's answer, for GPUs without a driver.
using GpuMemoryReader = Status (*)(PhysicalGpu* gpu);
void SetGpuMemoryReaderForTest(GpuMemoryReader reader);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_GPU_MEMORY_H_
