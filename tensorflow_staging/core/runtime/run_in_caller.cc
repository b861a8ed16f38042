// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/run_in_caller.h"

#include <functional>
#include <utility>

namespace tensorflow {
namespace staging {
namespace {

thread_local bool runs_in_caller = false;
thread_local bool begins_run = false;

}  // namespace

ScopedRunInCaller::ScopedRunInCaller()
    : runs_in_caller_(&runs_in_caller, true) {}

bool RunsInCaller() { return runs_in_caller; }

ScopedRunBegin::ScopedRunBegin() : begins_run_(&begins_run, true) {}

Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool) {
  return [pool](std::function<void()> closure) {
    if (runs_in_caller && begins_run) {
      closure();
    } else {
      pool->Schedule(std::move(closure));
    }
  };
}

}  // namespace staging
}  // namespace tensorflow
