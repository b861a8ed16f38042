// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/fake_gpu_executor.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tensorflow/compiler/xla/stream_executor/event.h"
#include "tensorflow/compiler/xla/stream_executor/multi_platform_manager.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace staging {
namespace {

namespace se = ::stream_executor;

std::atomic<int64_t> longest_delay_micros{0};

void Invert(void* to, const void* from, uint64_t size) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  for (uint64_t i = 0; i < size; ++i) target[i] = ~source[i];
}

// Where pinned memory begins, and how long it is.
struct PinnedMemory {
  static PinnedMemory* Get() {
    static auto* const memory = new PinnedMemory;
    return memory;
  }

  bool Contains(const void* address) {
    absl::MutexLock l(&mu);
    auto it = ranges.upper_bound(reinterpret_cast<uintptr_t>(address));
    if (it == ranges.begin()) return false;
    --it;
    return reinterpret_cast<uintptr_t>(address) - it->first < it->second;
  }

  absl::Mutex mu;
  std::map<uintptr_t, size_t> ranges ABSL_GUARDED_BY(mu);
};

// Waiting for an event means waiting for its last recording, so each recording
// has its own notification.
class FakeGpuEvent : public se::internal::EventInterface {
 public:
  using Recording = std::shared_ptr<absl::Notification>;

  static FakeGpuEvent* Of(se::Event* event) {
    return static_cast<FakeGpuEvent*>(event->implementation());
  }

  Recording Record() {
    absl::MutexLock l(&mu_);
    return last_ = std::make_shared<absl::Notification>();
  }

  // Returns null if the event has not been recorded.
  Recording last() {
    absl::MutexLock l(&mu_);
    return last_;
  }

 private:
  absl::Mutex mu_;
  Recording last_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

void SetFakeGpuDelay(absl::Duration longest) {
  longest_delay_micros = absl::ToInt64Microseconds(longest);
}

void NotePinned(const void* begin, size_t bytes) {
  PinnedMemory* memory = PinnedMemory::Get();
  absl::MutexLock l(&memory->mu);
  memory->ranges[reinterpret_cast<uintptr_t>(begin)] = bytes;
}

void NoteNotPinned(const void* begin) {
  PinnedMemory* memory = PinnedMemory::Get();
  absl::MutexLock l(&memory->mu);
  memory->ranges.erase(reinterpret_cast<uintptr_t>(begin));
}

FakeGpuStream* FakeGpuStream::Of(se::Stream* stream) {
  return static_cast<FakeGpuStream*>(stream->implementation());
}

void FakeGpuStream::EnqueueLate(absl::AnyInvocable<tsl::Status() &&> task) {
  EnqueueTaskWithStatus([this, task = std::move(task)]() mutable {
    const int64_t longest = longest_delay_micros;
    if (longest > 0) {
      absl::SleepFor(absl::Microseconds(random_() % (longest + 1)));
    }
    return std::move(task)();
  });
}

se::StreamExecutor* FakeGpuExecutor::Get(int gpu) {
  static auto* mu = new absl::Mutex;
  static auto* executors = new std::map<int, se::StreamExecutor*>;
  absl::MutexLock l(mu);
  se::StreamExecutor*& executor = (*executors)[gpu];
  if (executor == nullptr) {
    executor = new se::StreamExecutor(
        se::MultiPlatformManager::PlatformWithName("Host").value(),
        std::make_unique<FakeGpuExecutor>(), gpu);
    TF_CHECK_OK(executor->Init(se::DeviceOptions::Default()));
  }
  return executor;
}

FakeGpuExecutor::FakeGpuExecutor() : HostExecutor(se::PluginConfig()) {}

FakeGpuExecutor* FakeGpuExecutor::Of(se::StreamExecutor* executor) {
  return static_cast<FakeGpuExecutor*>(executor->implementation());
}

bool FakeGpuExecutor::Memcpy(se::Stream* stream, void* host_dst,
                             const se::DeviceMemoryBase& gpu_src,
                             uint64_t size) {
  FakeGpuStream::Of(stream)->counts()->device_to_host.Add(size);
  const void* source = gpu_src.opaque();
  FakeGpuStream::Of(stream)->EnqueueLate([host_dst, source, size] {
    Invert(host_dst, source, size);
    return tsl::OkStatus();
  });
  return true;
}

bool FakeGpuExecutor::Memcpy(se::Stream* stream, se::DeviceMemoryBase* gpu_dst,
                             const void* host_src, uint64_t size) {
  FakeGpuCounts* counts = FakeGpuStream::Of(stream)->counts();
  counts->host_to_device.Add(size);
  if (!PinnedMemory::Get()->Contains(host_src)) counts->from_pageable.Add(size);
  void* target = gpu_dst->opaque();
  FakeGpuStream::Of(stream)->EnqueueLate([target, host_src, size] {
    Invert(target, host_src, size);
    return tsl::OkStatus();
  });
  return true;
}

bool FakeGpuExecutor::MemcpyDeviceToDevice(se::Stream* stream,
                                           se::DeviceMemoryBase* gpu_dst,
                                           const se::DeviceMemoryBase& gpu_src,
                                           uint64_t size) {
  FakeGpuStream::Of(stream)->counts()->device_to_device.Add(size);
  void* target = gpu_dst->opaque();
  const void* source = gpu_src.opaque();
  FakeGpuStream::Of(stream)->EnqueueLate([target, source, size] {
    std::memcpy(target, source, size);
    return tsl::OkStatus();
  });
  return true;
}

bool FakeGpuExecutor::HostCallback(
    se::Stream* stream, absl::AnyInvocable<tsl::Status() &&> callback) {
  FakeGpuStream::Of(stream)->CountKernel();
  FakeGpuStream::Of(stream)->EnqueueLate(std::move(callback));
  return true;
}

// Like HostExecutor's, which synchronizes by a private copy of Abseil's
// functions: a sanitizer could not see the order.
bool FakeGpuExecutor::CreateStreamDependency(se::Stream* dependent,
                                             se::Stream* other) {
  FakeGpuStream::Of(dependent)->CountWait();
  auto reached = std::make_shared<absl::Notification>();
  FakeGpuStream::Of(other)->EnqueueTask([reached] { reached->Notify(); });
  FakeGpuStream::Of(dependent)->EnqueueTask(
      [reached] { reached->WaitForNotification(); });
  return true;
}

tsl::Status FakeGpuExecutor::RecordEvent(se::Stream* stream, se::Event* event) {
  FakeGpuStream::Of(stream)->EnqueueTask(
      [recording = FakeGpuEvent::Of(event)->Record()] { recording->Notify(); });
  return tsl::OkStatus();
}

tsl::Status FakeGpuExecutor::WaitForEvent(se::Stream* stream,
                                          se::Event* event) {
  FakeGpuStream::Of(stream)->CountWait();
  FakeGpuEvent::Recording recording = FakeGpuEvent::Of(event)->last();
  if (recording == nullptr) return tsl::OkStatus();
  FakeGpuStream::Of(stream)->EnqueueTask(
      [recording] { recording->WaitForNotification(); });
  return tsl::OkStatus();
}

se::Event::Status FakeGpuExecutor::PollForEventStatus(se::Event* event) {
  FakeGpuEvent::Recording recording = FakeGpuEvent::Of(event)->last();
  return recording == nullptr || recording->HasBeenNotified()
             ? se::Event::Status::kComplete
             : se::Event::Status::kPending;
}

std::unique_ptr<se::internal::EventInterface>
FakeGpuExecutor::CreateEventImplementation() {
  return std::make_unique<FakeGpuEvent>();
}

std::unique_ptr<se::internal::StreamInterface>
FakeGpuExecutor::GetStreamImplementation() {
  return std::make_unique<FakeGpuStream>(counts_);
}

}  // namespace staging
}  // namespace tensorflow
