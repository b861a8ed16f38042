// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/gpu_memory.h"

#include <atomic>

#include "tensorflow/compiler/xla/stream_executor/multi_platform_manager.h"
#include "tensorflow/compiler/xla/stream_executor/platform.h"
#include "tensorflow/compiler/xla/stream_executor/stream_executor.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

Status AskDriver(PhysicalGpu* gpu) {
  namespace se = ::stream_executor;
  TF_ASSIGN_OR_RETURN(se::Platform * platform,
                      se::MultiPlatformManager::PlatformWithName("CUDA"));
  TF_ASSIGN_OR_RETURN(se::StreamExecutor * executor,
                      platform->ExecutorForDevice(gpu->id));
  if (!executor->DeviceMemoryUsage(&gpu->free_bytes, &gpu->total_bytes)) {
    return errors::Unknown("The driver does not report the memory of GPU ",
                           gpu->id, ".");
  }
  return OkStatus();
}

std::atomic<GpuMemoryReader> current_reader{AskDriver};

}  // namespace

Status ReadGpuMemory(PhysicalGpu* gpu) { return current_reader.load()(gpu); }

void SetGpuMemoryReaderForTest(GpuMemoryReader reader) {
  current_reader = reader;
}

}  // namespace staging
}  // namespace tensorflow
