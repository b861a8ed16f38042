// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ATOMIC_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ATOMIC_H_

#include <atomic>
#include <utility>

#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

namespace tensorflow {
namespace scheduled {

// std::atomic: another thread may go on before each access. One thread runs at a
// time, so the value is an ordinary one, and all orders are the strictest.
template <typename T>
class Atomic {
 public:
  constexpr Atomic() = default;
  constexpr Atomic(T value) : value_(value) {}  // NOLINT: as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    return Access();
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    Access() = value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    return std::exchange(Access(), value);
  }
  T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) {
    T& now = Access();
    return std::exchange(now, now + value);
  }
  operator T() const { return load(); }  // NOLINT: as std::atomic
  T operator=(T value) { return Access() = value; }
  T operator++() { return ++Access(); }
  T operator--() { return --Access(); }

 private:
  T& Access() const {
    if (Scheduler* const scheduler = Scheduler::Current()) scheduler->Point();
    return value_;
  }

  mutable T value_{};
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ATOMIC_H_
