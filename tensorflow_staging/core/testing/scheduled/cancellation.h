// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CANCELLATION_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CANCELLATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "tensorflow_staging/core/testing/scheduled/mutex.h"

namespace tensorflow {
namespace scheduled {

// tensorflow::CancellationManager, without children.
class CancellationManager {
 public:
  using Token = int64_t;
  static constexpr Token kInvalidToken = -1;

  CancellationManager() = default;
  ~CancellationManager() { StartCancel(); }
  CancellationManager(const CancellationManager&) = delete;
  CancellationManager& operator=(const CancellationManager&) = delete;

  void StartCancel() {
    std::map<Token, std::function<void()>> callbacks;
    {
      MutexLock l(mu_);
      if (is_cancelled_ || is_cancelling_) return;
      is_cancelling_ = true;
      callbacks.swap(callbacks_);
    }
    for (const auto& [token, callback] : callbacks) callback();
    MutexLock l(mu_);
    is_cancelling_ = false;
    is_cancelled_ = true;
    cancelled_.NotifyAll();
  }

  bool IsCancelling() {
    MutexLock l(mu_);
    return is_cancelling_;
  }
  bool IsCancelled() {
    MutexLock l(mu_);
    return is_cancelled_;
  }

  Token get_cancellation_token() { return next_token_++; }

  bool RegisterCallback(Token token, std::function<void()> callback) {
    MutexLock l(mu_);
    if (is_cancelled_ || is_cancelling_) return false;
    callbacks_[token] = std::move(callback);
    return true;
  }
  // Waits for a cancellation in progress.
  bool DeregisterCallback(Token token) {
    MutexLock l(mu_);
    if (!is_cancelled_ && !is_cancelling_) {
      callbacks_.erase(token);
      return true;
    }
    while (is_cancelling_) cancelled_.Wait(&mu_);
    return false;
  }
  bool TryDeregisterCallback(Token token) {
    MutexLock l(mu_);
    if (is_cancelled_ || is_cancelling_) return false;
    callbacks_.erase(token);
    return true;
  }

 private:
  Mutex mu_;
  Condition cancelled_;
  bool is_cancelling_ = false;
  bool is_cancelled_ = false;
  Token next_token_ = 0;
  std::map<Token, std::function<void()>> callbacks_;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_CANCELLATION_H_
