// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"

namespace tensorflow {
namespace staging {

// Marks the time in which the calling thread begins a run, which is when it can
// compute it.
//
// Later, the calling thread meets closures of the run only if it cancels the
// run, which the runtime of a server does with a lock that the end of the run
// needs. A run must not end there.
//
// Must live on the stack of one thread. Scopes nest.
class ScopedRunBegin {
 public:
  ScopedRunBegin();

 private:
  const ScopedThreadValue<bool> begins_run_;
};

// Returns a runner that runs closures at once where RunsInCaller()
// (staged_call.h) and the thread begins a run, and schedules all others on `pool`. All kernels that the
// calling thread begins compute one after the other, so this is for graphs that
// only move records (record_moves.h).
Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_
