// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/buffer/waiting_list.h"

namespace tensorflow {
namespace staging {

bool Watch::AwaitCancellation(CancellationManager* cancellation,
                              std::function<void()> on_cancelled) {
  const CancellationToken token = cancellation->get_cancellation_token();
  if (!cancellation->RegisterCallback(token, std::move(on_cancelled))) {
    return false;
  }
  cancellation_ = cancellation;
  token_ = token;
  return true;
}

void Watch::AwaitDeadline(DeadlineTimer* timer, uint64_t id, int64_t micros) {
  deadline_ = timer->Add(id, micros);
  timer_ = timer;
}

void Watch::RemoveDeadline() {
  if (timer_ != nullptr) timer_->Remove(deadline_);
  timer_ = nullptr;
}

void Watch::Stop() {
  // Does not wait for a cancellation in progress: this thread may be running one
  // of its callbacks, and would wait for itself.
  if (cancellation_ != nullptr) cancellation_->TryDeregisterCallback(token_);
  cancellation_ = nullptr;
  RemoveDeadline();
}

}  // namespace staging
}  // namespace tensorflow
