// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/staged_run_threads.h"

#include <utility>

namespace tensorflow {
namespace staging {
namespace {

// Of the next run that the calling thread begins.
thread_local StagedRunThreads* next_run = nullptr;

}  // namespace

StagedRunThreads::ScopedNextRun::ScopedNextRun(StagedRunThreads* threads) {
  next_run = threads;
}

// The run may have failed before it asked.
StagedRunThreads::ScopedNextRun::~ScopedNextRun() { next_run = nullptr; }

StagedRunThreads* StagedRunThreads::TakeNextRun() {
  return std::exchange(next_run, nullptr);
}

}  // namespace staging
}  // namespace tensorflow
