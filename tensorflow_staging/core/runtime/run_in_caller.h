// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"

namespace tensorflow {
namespace staging {

// Lets the runs that the calling thread begins in the lifetime of this object
// compute in that thread, which would otherwise only wait for them. On a
// server, to hand a small run from thread to thread costs more than all else of
// it. A local session has fewer threads to wake, and they are often awake
// already, so it computes its staged runs there (staged_run_threads.h).
//
// Must live on the stack of one thread. Scopes nest.
class ScopedRunInCaller {
 public:
  ScopedRunInCaller();

 private:
  const ScopedThreadValue<bool> runs_in_caller_;
};

// Returns whether the calling thread is in such a scope.
bool RunsInCaller();

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

// Returns a runner that runs closures at once where RunsInCaller() and the
// thread begins a run, and schedules all others on `pool`. All kernels that the
// calling thread begins compute one after the other, so this is for graphs that
// only move records (record_moves.h).
Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_RUN_IN_CALLER_H_
