// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer that a closure which is scheduled on a thread pool of
// TensorFlow runs after the call that schedules it. The pools' queues are in
// TensorFlow's libraries, which are not instrumented.
//
// All pools, those of sessions too, are of this one class, whose virtual
// functions each test that contains this file defines itself.

#include <sanitizer/tsan_interface.h>

#include <functional>
#include <memory>
#include <utility>

#include "tensorflow_staging/core/testing/sanitizers/next_definition.h"

namespace tensorflow {
namespace staging {

// Eigen::ThreadPoolTempl<tsl::thread::EigenEnvironment>, whose argument is
// declared in a source file of TensorFlow.
struct EigenThreadPool;

namespace {

using Closure = std::function<void()>;

Closure AfterThisCall(Closure closure) {
  auto shared = std::make_shared<char>();
  char* const order = shared.get();
  Closure ordered = [shared = std::move(shared), closure = std::move(closure)] {
    __tsan_acquire(shared.get());
    closure();
  };
  // Last, because what was written until here is what the closure may read.
  __tsan_release(order);
  return ordered;
}

}  // namespace

#define EIGEN_THREAD_POOL \
  "_ZN5Eigen15ThreadPoolTemplIN3tsl6thread16EigenEnvironmentEE"
#define SCHEDULE EIGEN_THREAD_POOL "8ScheduleESt8functionIFvvEE"
#define SCHEDULE_WITH_HINT \
  EIGEN_THREAD_POOL "16ScheduleWithHintESt8functionIFvvEEii"

void Schedule(EigenThreadPool* pool, Closure closure) __asm__(SCHEDULE);
void ScheduleWithHint(EigenThreadPool* pool, Closure closure, int start,
                      int limit) __asm__(SCHEDULE_WITH_HINT);

void Schedule(EigenThreadPool* pool, Closure closure) {
  static auto* const next =
      NextDefinition<void(EigenThreadPool*, Closure)>(SCHEDULE);
  next(pool, AfterThisCall(std::move(closure)));
}

void ScheduleWithHint(EigenThreadPool* pool, Closure closure, int start,
                      int limit) {
  static auto* const next =
      NextDefinition<void(EigenThreadPool*, Closure, int, int)>(
          SCHEDULE_WITH_HINT);
  next(pool, AfterThisCall(std::move(closure)), start, limit);
}

}  // namespace staging
}  // namespace tensorflow
