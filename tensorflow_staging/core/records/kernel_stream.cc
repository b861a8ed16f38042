// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/kernel_stream.h"

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

Status KernelStream::Of(const DeviceBase& device, KernelStream* stream) {
  const DeviceBase::AcceleratorDeviceInfo* info =
      device.tensorflow_accelerator_device_info();
  if (info == nullptr || info->stream == nullptr ||
      info->event_mgr == nullptr) {
    return errors::InvalidArgument("Device ", device.name(),
                                   " has no stream with events.");
  }
  *stream = KernelStream(info->stream, info->event_mgr);
  return OkStatus();
}

void KernelStream::ThenCall(absl::AnyInvocable<void() &&> done) const {
  // EventMgr takes a function that can be copied.
  auto shared =
      std::make_shared<absl::AnyInvocable<void() &&>>(std::move(done));
  events_->ThenExecute(stream_, [shared] { std::move (*shared)(); });
}

bool KernelStream::IsOnSameGpu(const KernelStream& other) const {
  return stream_->parent() == other.stream_->parent();
}

Status CopyEvent::Make(const KernelStream& stream,
                       std::shared_ptr<CopyEvent>* event) {
  auto made = compat::NewEvent(stream.stream()->parent());
  if (made == nullptr) {
    return errors::Internal("The GPU has no event for the copy of a record.");
  }
  event->reset(new CopyEvent(std::move(made)));
  return OkStatus();
}

Status CopyEvent::RecordOn(stream_executor::Stream* copies) {
  return compat::Record(event_.get(), copies);
}

Status CopyEvent::AwaitOn(const KernelStream& stream) {
  if (over_.load(std::memory_order_acquire)) return OkStatus();
  return compat::WaitFor(event_.get(), stream.stream());
}

}  // namespace staging
}  // namespace tensorflow
