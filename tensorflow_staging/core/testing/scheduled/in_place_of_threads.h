// SPDX-License-Identifier: Apache-2.0
//
// Included before each file of the engine and of its histories, so that the
// scheduler decides which thread goes on. Namespace staging finds the names below
// before those of TensorFlow and of the C++ library.

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_IN_PLACE_OF_THREADS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_IN_PLACE_OF_THREADS_H_

#include <atomic>
#include <chrono>  // NOLINT

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/testing/scheduled/atomic.h"
#include "tensorflow_staging/core/testing/scheduled/cancellation.h"
#include "tensorflow_staging/core/testing/scheduled/clock.h"
#include "tensorflow_staging/core/testing/scheduled/env.h"
#include "tensorflow_staging/core/testing/scheduled/mutex.h"
#include "tensorflow_staging/core/testing/scheduled/op_kernel.h"
#include "tensorflow_staging/core/testing/scheduled/ordered_map.h"

// They have their place below.
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_STEADY_CONDITION_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ADDRESS_MAP_H_

namespace tensorflow {
namespace staging {

using mutex = scheduled::Mutex;
using mutex_lock = scheduled::MutexLock;
using tf_shared_lock = scheduled::SharedLock;
using SteadyCondition = scheduled::Condition;
using Notification = scheduled::Notification;
using CancellationManager = scheduled::CancellationManager;
using CancellationToken = scheduled::CancellationManager::Token;
using Env = scheduled::Env;
using Thread = scheduled::Thread;
using ThreadOptions = scheduled::ThreadOptions;
using OpKernel = scheduled::OpKernel;
using OpKernelContext = scheduled::OpKernelContext;
template <typename T>
using AddressMap = scheduled::OrderedMap<T>;

namespace std {

using namespace ::std;  // NOLINT: what is not named below

template <typename T>
using atomic = scheduled::Atomic<T>;

namespace chrono {

using namespace ::std::chrono;  // NOLINT: likewise
using steady_clock = scheduled::Clock;

}  // namespace chrono

struct thread {
  struct id {
    const void* running = nullptr;
    bool operator==(const id& other) const { return running == other.running; }
  };
};

namespace this_thread {

inline thread::id get_id() {
  return {scheduled::Scheduler::Current()->thread()};
}

}  // namespace this_thread

}  // namespace std
}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_IN_PLACE_OF_THREADS_H_
