// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tensorflow/core/common_runtime/local_device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/fake_gpu_executor.h"
#include "tensorflow_staging/core/testing/fake_gpu_memory.h"

namespace tensorflow {
namespace staging {

// Devices of type GPU for tests on machines without a GPU. A program that links
// this library has them in all its sessions, instead of real GPUs.
//
// They are asynchronous like real GPUs: a kernel or a copy is queued on a
// stream and runs later, and memory that the host has freed is used for other
// tensors at once. Copies, waits and callbacks after events are TensorFlow's
// own code for GPUs (GPUDeviceContext, GPUUtil, EventMgr, BFCAllocator) over
// FakeGpuExecutor. Numbers and memory limits of virtual devices follow the
// rules of TensorFlow's GPU devices, which keep them until the process ends.
//
// TensorFlow's own kernels for GPUs do not run on them: use those of
// fake_gpu_kernels.cc, and TensorFlow's kernels that only forward tensors.
class FakeGpu : public LocalDevice {
 public:
  // What a GPU keeps from session to session, as TensorFlow does.
  struct Parts;

  FakeGpu(const SessionOptions& options, const std::string& name, int gpu,
          Parts* parts);

  // Returns the device /device:GPU:`index` of `session`.
  static FakeGpu* Of(Session* session, int index = 0);

  Allocator* GetAllocator(AllocatorAttributes attributes) override;
  Status MakeTensorFromProto(const TensorProto& proto,
                             const AllocatorAttributes attributes,
                             Tensor* tensor) override;
  Status TryGetDeviceContext(DeviceContext** context) override;
  Status Sync() override;

  stream_executor::Stream* compute_stream();
  FakeGpuCounts& counts();
  FakeGpuMemory& memory();
  // The most memory that has been in use at the same time.
  int64_t peak_bytes();

 private:
  Parts* const parts_;
  core::RefCountPtr<GPUDeviceContext> context_;
  AcceleratorDeviceInfo accelerator_;
};

// Sets how many GPUs, from 1 to 4, the sessions have that are created from now
// on, as if they were in another process than those before. It is 1 at first.
void SetFakeGpuCount(int count);

// Queues `kernel` on the compute stream of the GPU on which `ctx` runs. Like a
// real kernel, it holds no references to the tensors that it reads and writes.
void LaunchOnFakeGpu(OpKernelContext* ctx, std::function<void()> kernel);

// Stops the compute stream of a GPU after what is already queued there, until
// Release or the end of the scope.
class StoppedFakeGpu {
 public:
  explicit StoppedFakeGpu(FakeGpu* gpu);
  ~StoppedFakeGpu() { Release(); }

  void Release();

 private:
  const std::shared_ptr<absl::Notification> released_;
};

// Limits the memory for records until the end of the scope (FakeGpuMemory).
class LimitedFakeGpu {
 public:
  LimitedFakeGpu(FakeGpu* gpu, int64_t bytes) : memory_(gpu->memory()) {
    memory_.Limit(bytes);
  }
  ~LimitedFakeGpu() { memory_.Limit(FakeGpuMemory::kNoLimit); }

 private:
  FakeGpuMemory& memory_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_H_
