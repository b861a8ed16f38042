// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/run_in_caller.h"

#include <functional>
#include <utility>

#include "tensorflow_staging/core/runtime/staged_call.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local bool begins_run = false;

}  // namespace

ScopedRunBegin::ScopedRunBegin() : begins_run_(&begins_run, true) {}

Executor::Args::Runner RunnerInCaller(thread::ThreadPool* pool) {
  return [pool](std::function<void()> closure) {
    if (RunsInCaller() && begins_run) {
      closure();
    } else {
      pool->Schedule(std::move(closure));
    }
  };
}

}  // namespace staging
}  // namespace tensorflow
