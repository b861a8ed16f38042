// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/status.h"

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

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_KERNEL_STREAM_H_
