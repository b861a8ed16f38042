// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_BUFFER_WAITING_LIST_H_
#define TENSORFLOW_STAGING_CORE_BUFFER_WAITING_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow_staging/core/buffer/deadline_timer.h"

namespace tensorflow {
namespace staging {

// The cancellation and the deadline that may end a wait early.
class Watch {
 public:
  // Calls `on_cancelled` when `cancellation` begins. Returns false, and calls
  // nothing, if it has begun already.
  bool AwaitCancellation(CancellationManager* cancellation,
                         std::function<void()> on_cancelled);
  // Lets `timer` report `id` in `micros` microseconds.
  void AwaitDeadline(DeadlineTimer* timer, uint64_t id, int64_t micros);

  bool has_deadline() const { return timer_ != nullptr; }
  void RemoveDeadline();

  // Ends both. Does not wait for a call in progress, which may come late.
  void Stop();

 private:
  CancellationManager* cancellation_ = nullptr;
  CancellationToken token_ = CancellationManager::kInvalidToken;
  DeadlineTimer* timer_ = nullptr;
  DeadlineTimer::Entry deadline_ = {};
};

// Who waits, in the order of arrival. A Waiter has a Watch `watch`, which ends
// when the waiter leaves the list. Ids must grow. Not thread-safe.
template <typename Waiter>
class WaitingList {
 public:
  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }
  // Of pairs of an id and a waiter.
  auto begin() { return waiters_.begin(); }
  auto end() { return waiters_.end(); }
  auto begin() const { return waiters_.begin(); }
  auto end() const { return waiters_.end(); }

  uint64_t oldest_id() const { return waiters_.begin()->first; }
  const Waiter& oldest() const { return waiters_.begin()->second; }
  // Null if `id` does not wait here.
  const Waiter* Find(uint64_t id) const {
    const auto it = waiters_.find(id);
    return it == waiters_.end() ? nullptr : &it->second;
  }

  void Add(uint64_t id, Waiter waiter) {
    waiters_.emplace_hint(waiters_.end(), id, std::move(waiter));
  }

  Waiter RemoveOldest() { return Remove(waiters_.begin()); }
  // Returns nothing if `id` does not wait here.
  std::optional<Waiter> Remove(uint64_t id) {
    const auto it = waiters_.find(id);
    if (it == waiters_.end()) return std::nullopt;
    return Remove(it);
  }
  // Removes and returns the waiters for which `predicate` is true.
  template <typename Predicate>
  std::vector<Waiter> RemoveIf(Predicate predicate) {
    std::vector<Waiter> removed;
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      const auto waiter = it++;
      if (predicate(waiter->second)) removed.push_back(Remove(waiter));
    }
    return removed;
  }

 private:
  using Waiters = std::map<uint64_t, Waiter>;

  Waiter Remove(typename Waiters::iterator it) {
    Waiter waiter = std::move(it->second);
    waiters_.erase(it);
    waiter.watch.Stop();
    return waiter;
  }

  Waiters waiters_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_BUFFER_WAITING_LIST_H_
