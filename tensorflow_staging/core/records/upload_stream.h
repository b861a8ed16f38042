// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_STREAM_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_STREAM_H_

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/records/copy_event.h"
#include "tensorflow_staging/core/records/kernel_stream.h"

namespace tensorflow {
namespace staging {

// The stream of a GPU's device on which records are copied from the host. It is
// not TensorFlow's stream for copies from the host: the copies of steps wait
// there for the steps' kernels, and so would all that is behind them.
//
// What is queued here waits only for kernels that were queued before it, and
// kernels wait only for copies that were queued before them (CopyEvent), so
// they never wait for each other.
//
// Streams live as long as the process, so this may be copied and kept.
// Thread-safe. Copies of several callers may alternate.
class UploadStream {
 public:
  // Returns the stream for the device that runs its kernels on `kernels`.
  static UploadStream For(const KernelStream& kernels);

  // Lets the copies that are queued from now on wait for all kernels that are
  // queued by now.
  void WaitForKernels() const;

  // Queues a copy from pinned memory, which must live until the copy is over.
  void Copy(const void* host, void* device, int64_t bytes) const;

  // Records `event` behind the copies that are queued by now. When it has
  // happened, notes that, and calls `done` in a thread that calls back after
  // events, so `done` must not block. Returns INTERNAL if the GPU has refused a
  // copy; `done` is called all the same.
  Status End(std::shared_ptr<CopyEvent> event,
             absl::AnyInvocable<void() &&> done) const;

 private:
  UploadStream(const KernelStream& kernels, stream_executor::Stream* copies)
      : kernels_(kernels), copies_(copies) {}

  KernelStream kernels_;
  stream_executor::Stream* copies_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_STREAM_H_
