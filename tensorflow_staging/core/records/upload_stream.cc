// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/upload_stream.h"

#include <map>
#include <utility>

#include "tensorflow/compiler/xla/stream_executor/device_memory.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {
namespace staging {
namespace {

namespace se = ::stream_executor;

se::Stream* FindOrMake(se::Stream* kernels) {
  static auto* const mu = new mutex;
  static auto* const streams = new std::map<se::Stream*, se::Stream*>;
  mutex_lock l(*mu);
  se::Stream*& copies = (*streams)[kernels];
  if (copies == nullptr) {
    copies = new se::Stream(kernels->parent());
    copies->Init();
  }
  return copies;
}

}  // namespace

UploadStream UploadStream::For(const KernelStream& kernels) {
  return UploadStream(kernels, FindOrMake(kernels.stream()));
}

void UploadStream::WaitForKernels() const {
  copies_->ThenWaitFor(kernels_.stream());
}

void UploadStream::Copy(const void* host, void* device, int64_t bytes) const {
  se::DeviceMemoryBase target(device, bytes);
  copies_->ThenMemcpy(&target, host, bytes);
}

Status UploadStream::End(std::shared_ptr<CopyEvent> event,
                         absl::AnyInvocable<void() &&> done) const {
  event->RecordOn(copies_);
  // EventMgr takes a function that can be copied.
  auto shared =
      std::make_shared<absl::AnyInvocable<void() &&>>(std::move(done));
  kernels_.events()->ThenExecute(copies_, [event = std::move(event), shared] {
    event->SetOver();
    std::move (*shared)();
  });
  if (copies_->ok()) return OkStatus();
  return errors::Internal(
      "The GPU has refused the copy of a record, or an earlier one.");
}

}  // namespace staging
}  // namespace tensorflow
