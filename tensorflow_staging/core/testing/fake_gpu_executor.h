// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_EXECUTOR_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "tensorflow/compiler/xla/stream_executor/host/host_gpu_executor.h"
#include "tensorflow/compiler/xla/stream_executor/host/host_stream.h"
#include "tensorflow/compiler/xla/stream_executor/stream_executor.h"

namespace tensorflow {
namespace staging {

// The memory of a fake GPU is host memory, but every copy between the host and
// the GPU inverts all bits. Code that reads device memory as host memory, or
// the reverse, thus reads a wrong value.

// Returns the representation of `value` on the other side of the border between
// host and GPU.
template <typename T>
T AcrossBorder(T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (char& byte : bytes) byte = ~byte;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// What a fake GPU has done. Each copy, kernel and wait counts when it is
// queued.
struct FakeGpuCounts {
  struct Copies {
    std::atomic<int64_t> count{0};
    std::atomic<int64_t> bytes{0};

    void Add(int64_t copied) {
      ++count;
      bytes += copied;
    }
  };
  Copies host_to_device;
  // Those of host_to_device from memory that is not pinned. A real GPU would
  // make the host wait for these.
  Copies from_pageable;
  Copies device_to_host;
  Copies device_to_device;
  // Host callbacks on the compute stream, which stand for kernels.
  std::atomic<int64_t> kernels{0};
  // How often the compute stream waits for another stream.
  std::atomic<int64_t> compute_waits{0};
  // How often one of the other streams waits for a stream.
  std::atomic<int64_t> copy_waits{0};
  // Calls of Device::Sync.
  std::atomic<int64_t> syncs{0};
};

// A stream that runs its tasks in order on its own thread, each after a random
// delay.
class FakeGpuStream : public stream_executor::host::HostStream {
 public:
  explicit FakeGpuStream(FakeGpuCounts* counts)
      : HostStream(/*stack_size_in_bytes=*/0), counts_(counts) {}

  static FakeGpuStream* Of(stream_executor::Stream* stream);

  // Says for which device the stream counts, before it is used.
  void Use(FakeGpuCounts* counts, bool compute) {
    counts_ = counts;
    compute_ = compute;
  }

  void EnqueueLate(absl::AnyInvocable<tsl::Status() &&> task);

  FakeGpuCounts* counts() { return counts_; }
  void CountKernel() {
    if (compute_) ++counts_->kernels;
  }
  void CountWait() {
    ++(compute_ ? counts_->compute_waits : counts_->copy_waits);
  }

 private:
  FakeGpuCounts* counts_;
  bool compute_ = false;
  // Only the stream's thread uses it.
  std::minstd_rand random_;
};

// Sets the longest delay of a task, for all streams of the process. It is zero
// at first.
void SetFakeGpuDelay(absl::Duration longest);

// Notes that this memory is pinned, or that it is no longer.
void NotePinned(const void* begin, size_t bytes);
void NoteNotPinned(const void* begin);

// One physical GPU: StreamExecutor's Host platform with the delays, the counts,
// the border between the memories, and events that can be recorded repeatedly,
// as TensorFlow's EventMgr does. Kernels are host callbacks.
class FakeGpuExecutor : public stream_executor::host::HostExecutor {
 public:
  // Returns the executor of GPU `gpu`, which lives as long as the process.
  static stream_executor::StreamExecutor* Get(int gpu);

  FakeGpuExecutor();

  static FakeGpuExecutor* Of(stream_executor::StreamExecutor* executor);

  // Says for which device those streams count that are made from now on and
  // belong to no device, or to one that says so itself later.
  void SetCounts(FakeGpuCounts* counts) { counts_ = counts; }

  bool Memcpy(stream_executor::Stream* stream, void* host_dst,
              const stream_executor::DeviceMemoryBase& gpu_src,
              uint64_t size) override;
  bool Memcpy(stream_executor::Stream* stream,
              stream_executor::DeviceMemoryBase* gpu_dst, const void* host_src,
              uint64_t size) override;
  bool MemcpyDeviceToDevice(stream_executor::Stream* stream,
                            stream_executor::DeviceMemoryBase* gpu_dst,
                            const stream_executor::DeviceMemoryBase& gpu_src,
                            uint64_t size) override;
  bool HostCallback(stream_executor::Stream* stream,
                    absl::AnyInvocable<tsl::Status() &&> callback) override;
  bool CreateStreamDependency(stream_executor::Stream* dependent,
                              stream_executor::Stream* other) override;

  tsl::Status RecordEvent(stream_executor::Stream* stream,
                          stream_executor::Event* event) override;
  tsl::Status WaitForEvent(stream_executor::Stream* stream,
                           stream_executor::Event* event) override;
  stream_executor::Event::Status PollForEventStatus(
      stream_executor::Event* event) override;

  std::unique_ptr<stream_executor::internal::EventInterface>
  CreateEventImplementation() override;
  std::unique_ptr<stream_executor::internal::StreamInterface>
  GetStreamImplementation() override;

 private:
  std::atomic<FakeGpuCounts*> counts_{nullptr};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_EXECUTOR_H_
