// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_COPY_EVENT_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_COPY_EVENT_H_

#include <atomic>
#include <memory>

#include "tensorflow/compiler/xla/stream_executor/event.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/records/kernel_stream.h"

namespace tensorflow {
namespace staging {

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
  void RecordOn(stream_executor::Stream* copies);

  // Notes that the event has happened.
  void SetOver() { over_.store(true, std::memory_order_release); }

  // Lets what is queued on `stream` from now on wait for the event. Queues
  // nothing if it has been noted to have happened.
  void AwaitOn(const KernelStream& stream);

 private:
  explicit CopyEvent(stream_executor::StreamExecutor* gpu) : event_(gpu) {}

  stream_executor::Event event_;
  std::atomic<bool> over_{false};

  TF_DISALLOW_COPY_AND_ASSIGN(CopyEvent);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_COPY_EVENT_H_
