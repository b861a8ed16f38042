// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer about the mutexes and notifications of Abseil, as
// thread_mutexes.cc does about those of TensorFlow; not about those in
// libtensorflow_cc, which has private copies of these functions. A lock of
// absl::Mutex is told as an order of events only, because not all functions are
// here that lock it.

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

using ::tensorflow::staging::NextDefinition;

// The address of the flag that HasBeenNotified() reads, in instrumented code,
// too: it follows the mutex.
void* FlagOf(const Notification* notification) {
  return reinterpret_cast<char*>(const_cast<Notification*>(notification)) +
         sizeof(Mutex);
}

}  // namespace

void Mutex::Lock() {
  static auto* const next =
      NextDefinition<void(Mutex*)>("_ZN4absl12lts_202301255Mutex4LockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static auto* const next =
      NextDefinition<void(Mutex*)>("_ZN4absl12lts_202301255Mutex6UnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::ReaderLock() {
  static auto* const next = NextDefinition<void(Mutex*)>(
      "_ZN4absl12lts_202301255Mutex10ReaderLockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static auto* const next = NextDefinition<void(Mutex*)>(
      "_ZN4absl12lts_202301255Mutex12ReaderUnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::Await(const Condition& condition) {
  static auto* const next = NextDefinition<void(Mutex*, const Condition&)>(
      "_ZN4absl12lts_202301255Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  next(this, condition);
  __tsan_acquire(this);
}

void Notification::Notify() {
  static auto* const next = NextDefinition<void(Notification*)>(
      "_ZN4absl12lts_2023012512Notification6NotifyEv");
  __tsan_release(FlagOf(this));
  next(this);
}

void Notification::WaitForNotification() const {
  static auto* const next = NextDefinition<void(const Notification*)>(
      "_ZNK4absl12lts_2023012512Notification19WaitForNotificationEv");
  next(this);
  __tsan_acquire(FlagOf(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const next = NextDefinition<bool(const Notification*, Duration)>(
      "_ZNK4absl12lts_2023012512Notification"
      "30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(FlagOf(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
