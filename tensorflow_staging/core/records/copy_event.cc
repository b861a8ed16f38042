// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/copy_event.h"

#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {

Status CopyEvent::Make(const KernelStream& stream,
                       std::shared_ptr<CopyEvent>* event) {
  event->reset(new CopyEvent(stream.stream()->parent()));
  if ((*event)->event_.Init()) return OkStatus();
  return errors::Internal("The GPU has no event for the copy of a record.");
}

void CopyEvent::RecordOn(stream_executor::Stream* copies) {
  copies->ThenRecordEvent(&event_);
}

void CopyEvent::AwaitOn(const KernelStream& stream) {
  if (over_.load(std::memory_order_acquire)) return;
  stream.stream()->ThenWaitFor(&event_);
}

}  // namespace staging
}  // namespace tensorflow
