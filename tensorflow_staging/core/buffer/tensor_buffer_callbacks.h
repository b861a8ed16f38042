// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_

#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// Callbacks that a TensorBuffer collects under its lock and runs without it.
// Part of the implementation of TensorBuffer.
//
// Run calls the callbacks of puts, runs and pauses before those of takes: the
// former only let a producer or a saver continue, while the callback of
// a take may run the whole training step in this thread, if the session runs
// its kernels on the caller's thread.
//
// Run does not touch the buffer, because any callback may release the last
// reference to it.
//
// What ends with a session's run ends while that run's step container is
// emptied, which the runtime of a server does with the lock of its devices. So
// what was waiting for it goes on in another thread.
class TensorBuffer::DueCallbacks {
 public:
  void Add(absl::AnyInvocable<void(const Status&)> done, Status status) {
    calls_.emplace_back(std::move(done), std::move(status));
  }

  void AddTake(TakeDone done, Status status, Record record) {
    takes_.emplace_back(std::move(done), std::move(status), std::move(record));
  }

  void RunInAnotherThread() {
    if (calls_.empty() && takes_.empty()) return;
    Env::Default()->SchedClosure(
        [due = std::move(*this)]() mutable { due.Run(); });
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
  // A put or a take that succeeds adds at most one of each.
  absl::InlinedVector<
      std::pair<absl::AnyInvocable<void(const Status&)>, Status>, 1>
      calls_;
  absl::InlinedVector<std::tuple<TakeDone, Status, Record>, 1> takes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_TENSOR_BUFFER_CALLBACKS_H_
