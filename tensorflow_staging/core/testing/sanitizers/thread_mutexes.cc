// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer about TensorFlow's mutexes. They synchronize by atomics
// in TensorFlow's libraries, which are not instrumented, so that every two
// accesses that only a mutex keeps apart would be reported as a data race.
//
// A test that contains this file defines the functions of tsl::mutex itself, so
// that the loader binds to them the calls of all libraries, TensorFlow's own
// too. They call TensorFlow's functions.
//
// mutex::Await is missing: only TensorFlow's eager runtime, its pools of run
// handlers and snapshots call it, which no C++ test of this project uses.

#include <sanitizer/tsan_interface.h>

#include <chrono>              // NOLINT
#include <condition_variable>  // NOLINT

#include "tensorflow/tsl/platform/mutex.h"
#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

// Of ThreadSanitizer's library, but of none of its headers.
extern "C" {
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace tsl {
namespace {

using ::tensorflow::staging::NextDefinition;

// While it lives, a wait has given the mutex up.
class GivenUp {
 public:
  explicit GivenUp(void* mu) : mu_(mu) {
    __tsan_mutex_pre_unlock(mu_, 0);
    __tsan_mutex_post_unlock(mu_, 0);
  }

  ~GivenUp() {
    __tsan_mutex_pre_lock(mu_, 0);
    __tsan_mutex_post_lock(mu_, 0, 0);
  }

  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;

 private:
  void* const mu_;
};

}  // namespace

mutex::mutex() {
  static auto* const next = NextDefinition<void(mutex*)>("_ZN3tsl5mutexC1Ev");
  next(this);
  // Mutexes have no destructor. One that was here before, such as that of an
  // earlier run in the same place on the stack, had another order with other
  // locks. The write that this implies is none: whoever locks the mutex next
  // may have got it in a way that ThreadSanitizer does not see.
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  __tsan_mutex_destroy(this, 0);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

void mutex::lock() {
  static auto* const next =
      NextDefinition<void(mutex*)>("_ZN3tsl5mutex4lockEv");
  __tsan_mutex_pre_lock(this, 0);
  next(this);
  __tsan_mutex_post_lock(this, 0, 0);
}

bool mutex::try_lock() {
  static auto* const next =
      NextDefinition<bool(mutex*)>("_ZN3tsl5mutex8try_lockEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
  const bool locked = next(this);
  __tsan_mutex_post_lock(
      this,
      locked ? __tsan_mutex_try_lock
             : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed,
      0);
  return locked;
}

void mutex::unlock() {
  static auto* const next =
      NextDefinition<void(mutex*)>("_ZN3tsl5mutex6unlockEv");
  __tsan_mutex_pre_unlock(this, 0);
  next(this);
  __tsan_mutex_post_unlock(this, 0);
}

void mutex::lock_shared() {
  static auto* const next =
      NextDefinition<void(mutex*)>("_ZN3tsl5mutex11lock_sharedEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_read_lock);
  next(this);
  __tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0);
}

bool mutex::try_lock_shared() {
  static auto* const next =
      NextDefinition<bool(mutex*)>("_ZN3tsl5mutex15try_lock_sharedEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_read_lock);
  const bool locked = next(this);
  __tsan_mutex_post_lock(
      this,
      locked ? __tsan_mutex_try_read_lock : __tsan_mutex_try_read_lock_failed,
      0);
  return locked;
}

void mutex::unlock_shared() {
  static auto* const next =
      NextDefinition<void(mutex*)>("_ZN3tsl5mutex13unlock_sharedEv");
  __tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock);
  next(this);
  __tsan_mutex_post_unlock(this, __tsan_mutex_read_lock);
}

void condition_variable::wait(mutex_lock& lock) {
  static auto* const next =
      NextDefinition<void(condition_variable*, mutex_lock&)>(
          "_ZN3tsl18condition_variable4waitERNS_10mutex_lockE");
  const GivenUp given_up(lock.mutex());
  next(this, lock);
}

namespace internal {

std::cv_status wait_until_system_clock(
    CVData* cv_data, MuData* mu_data,
    const std::chrono::system_clock::time_point timeout_time) {
  static auto* const next = NextDefinition<std::cv_status(
      CVData*, MuData*, std::chrono::system_clock::time_point)>(
      "_ZN3tsl8internal23wait_until_system_clockEPNS0_6CVDataEPNS0_"
      "6MuDataENSt6chrono10time_pointINS5_3_V212system_clockENS5_"
      "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
  // The mutex begins with its data, so they have the same address.
  const GivenUp given_up(mu_data);
  return next(cv_data, mu_data, timeout_time);
}

}  // namespace internal
}  // namespace tsl
