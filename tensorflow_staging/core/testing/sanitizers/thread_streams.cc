// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer the order of the tasks of fake GPUs: a task runs after
// the call that enqueues it, and before a wait for the stream returns. The
// queues are in TensorFlow's libraries, which are not instrumented.
//
// A test that contains this file defines the functions of HostStream itself, so
// that the loader binds to them the calls of all libraries.

#include <sanitizer/tsan_interface.h>

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/compiler/xla/stream_executor/host/host_stream.h"
#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

namespace stream_executor {
namespace host {
namespace {

using ::tensorflow::staging::NextDefinition;

template <typename Result>
absl::AnyInvocable<Result() &&> InOrder(HostStream* stream,
                                        absl::AnyInvocable<Result() &&> task) {
  auto shared = std::make_shared<char>();
  char* const order = shared.get();
  absl::AnyInvocable<Result() &&> ordered = [stream, shared = std::move(shared),
                                             task = std::move(task)]() mutable {
    // Tells it even if the task frees what it holds.
    struct End {
      ~End() { __tsan_release(stream); }
      HostStream* const stream;
    } end{stream};
    __tsan_acquire(shared.get());
    return std::move(task)();
  };
  // Last, because what was written until here is what the task may read.
  __tsan_release(order);
  return ordered;
}

}  // namespace

bool HostStream::EnqueueTaskWithStatus(
    absl::AnyInvocable<tsl::Status() &&> task) {
  static auto* const next =
      NextDefinition<bool(HostStream*, absl::AnyInvocable<tsl::Status() &&>)>(
          "_ZN15stream_executor4host10HostStream21EnqueueTaskWithStatusEN4absl"
          "12lts_2023012512AnyInvocableIFNS3_6StatusEvOEEE");
  return next(this, InOrder(this, std::move(task)));
}

bool HostStream::EnqueueTask(absl::AnyInvocable<void() &&> task) {
  static auto* const next =
      NextDefinition<bool(HostStream*, absl::AnyInvocable<void() &&>)>(
          "_ZN15stream_executor4host10HostStream11EnqueueTaskEN4absl"
          "12lts_2023012512AnyInvocableIFvvOEEE");
  return next(this, InOrder(this, std::move(task)));
}

tsl::Status HostStream::BlockUntilDone() {
  static auto* const next = NextDefinition<tsl::Status(HostStream*)>(
      "_ZN15stream_executor4host10HostStream14BlockUntilDoneEv");
  tsl::Status status = next(this);
  __tsan_acquire(this);
  return status;
}

}  // namespace host
}  // namespace stream_executor
