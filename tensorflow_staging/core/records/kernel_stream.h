// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_

#include <atomic>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/compat/gpu_stream.h"

namespace tensorflow {
namespace staging {

// The stream on which a GPU's device runs its kernels. Streams and what watches
// them live as long as the process, so this may be copied and kept.
class KernelStream {
 public:
  // Sets `*stream` to that of `device`. Returns INVALID_ARGUMENT if the device
  // has none.
  static Status Of(const DeviceBase& device, KernelStream* stream);

  KernelStream() = default;
  KernelStream(stream_executor::Stream* stream, EventMgr* events)
      : stream_(stream), events_(events) {}

  // Calls `done` when all that is queued now has been done. `done` runs in a
  // thread that calls back after events, and must not block.
  void ThenCall(absl::AnyInvocable<void() &&> done) const;

  // Whether both streams are on one GPU, and so have its memory in common.
  bool IsOnSameGpu(const KernelStream& other) const;

  stream_executor::Stream* stream() const { return stream_; }
  EventMgr* events() const { return events_; }

 private:
  stream_executor::Stream* stream_ = nullptr;
  EventMgr* events_ = nullptr;
};

// Orders the kernels that use a record behind the queued copies that bring it
// to the GPU. No thread waits.
//
// Thread-safe, once the event has been recorded.
class CopyEvent {
 public:
  // Sets `*event` to a new event of the GPU of `stream`.
  static Status Make(const KernelStream& stream,
                     std::shared_ptr<CopyEvent>* event);

  // Lets the event happen when all that is queued on `copies` now is over.
  Status RecordOn(stream_executor::Stream* copies);

  // Notes that the event has happened.
  void SetOver() { over_.store(true, std::memory_order_release); }

  // Lets what is queued on `stream` from now on wait for the event. Queues
  // nothing if it has been noted to have happened.
  Status AwaitOn(const KernelStream& stream);

 private:
  explicit CopyEvent(std::unique_ptr<stream_executor::Event> event)
      : event_(std::move(event)) {}

  const std::unique_ptr<stream_executor::Event> event_;
  std::atomic<bool> over_{false};

  TF_DISALLOW_COPY_AND_ASSIGN(CopyEvent);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_
