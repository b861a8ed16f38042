// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_

#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// What a TensorBuffer collects under its lock and calls without it. A part of
// its implementation.
//
// Puts, runs and restarts are called before takes: they only let a producer or
// an initialiser go on, while the end of a take may run the whole training step
// right here, in a session that runs its kernels on the caller's thread.
//
// Run does not touch the buffer, since any callback may drop its last
// reference.
class TensorBuffer::DueCallbacks {
 public:
  void Call(absl::AnyInvocable<void(const Status&)> done, Status status) {
    calls_.emplace_back(std::move(done), std::move(status));
  }

  void Take(TakeDone done, Status status, Record record) {
    takes_.emplace_back(std::move(done), std::move(status), std::move(record));
  }

  void Run() {
    for (auto& [done, status] : calls_) {
      done(status);
    }
    for (auto& [done, status, record] : takes_) {
      done(status, std::move(record));
    }
  }

 private:
  // A step that goes well has one of each at most.
  absl::InlinedVector<
      std::pair<absl::AnyInvocable<void(const Status&)>, Status>, 1>
      calls_;
  absl::InlinedVector<std::tuple<TakeDone, Status, Record>, 1> takes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_
