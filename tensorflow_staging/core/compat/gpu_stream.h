// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_COMPAT_GPU_STREAM_H_
#define TENSORFLOW_STAGING_CORE_COMPAT_GPU_STREAM_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "tensorflow/compiler/xla/stream_executor/device_memory.h"
#include "tensorflow/compiler/xla/stream_executor/event.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/compiler/xla/stream_executor/stream_executor.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {
namespace compat {

// The same calls under the names that each version of StreamExecutor has. In
// 2.14, streams and events are made by constructors, and a call that fails leaves
// the stream not ok(). Later, the GPU makes them, and calls return a status. Each
// template exists where its names do.

namespace se = ::stream_executor;

// Returns null if the GPU has none.
template <typename Gpu, typename Event = se::Event>
auto NewEvent(Gpu* gpu)
    -> std::enable_if_t<std::is_constructible_v<Event, Gpu*>,
                        std::unique_ptr<Event>> {
  auto event = std::make_unique<Event>(gpu);
  return event->Init() ? std::move(event) : nullptr;
}

template <typename Gpu>
auto NewEvent(Gpu* gpu) -> std::decay_t<decltype(*gpu->CreateEvent())> {
  auto event = gpu->CreateEvent();
  return event.ok() ? *std::move(event) : nullptr;
}

// The same.
template <typename Gpu, typename Stream = se::Stream>
auto NewStream(Gpu* gpu)
    -> std::enable_if_t<std::is_constructible_v<Stream, Gpu*>,
                        std::unique_ptr<Stream>> {
  auto stream = std::make_unique<Stream>(gpu);
  stream->Init();
  return stream;
}

template <typename Gpu>
auto NewStream(Gpu* gpu) -> std::decay_t<decltype(*gpu->CreateStream())> {
  auto stream = gpu->CreateStream();
  return stream.ok() ? *std::move(stream) : nullptr;
}

template <typename Stream>
auto Record(se::Event* event, Stream* stream)
    -> decltype(stream->ThenRecordEvent(event), Status()) {
  stream->ThenRecordEvent(event);
  return OkStatus();
}

template <typename Stream>
auto Record(se::Event* event, Stream* stream)
    -> decltype(Status(stream->RecordEvent(event))) {
  return stream->RecordEvent(event);
}

// `other` is an event or a stream.
template <typename Stream, typename Other>
auto WaitFor(Other* other, Stream* stream)
    -> decltype(stream->ThenWaitFor(other), Status()) {
  stream->ThenWaitFor(other);
  return OkStatus();
}

template <typename Stream, typename Other>
auto WaitFor(Other* other, Stream* stream)
    -> decltype(Status(stream->WaitFor(other))) {
  return stream->WaitFor(other);
}

// Copies to the GPU.
template <typename Stream>
auto Copy(const void* host, se::DeviceMemoryBase* device, uint64_t bytes,
          Stream* stream)
    -> decltype(stream->ThenMemcpy(device, host, bytes), Status()) {
  stream->ThenMemcpy(device, host, bytes);
  return OkStatus();
}

template <typename Stream>
auto Copy(const void* host, se::DeviceMemoryBase* device, uint64_t bytes,
          Stream* stream)
    -> decltype(Status(stream->Memcpy(device, host, bytes))) {
  return stream->Memcpy(device, host, bytes);
}

}  // namespace compat
}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_COMPAT_GPU_STREAM_H_
