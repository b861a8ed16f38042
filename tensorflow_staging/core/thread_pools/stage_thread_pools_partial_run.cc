// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools_partial_run.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local const RunOptions* current = nullptr;

}  // namespace

ScopedPartialRunOptions::ScopedPartialRunOptions(const RunOptions& options)
    : outer_(current) {
  current = &options;
}

ScopedPartialRunOptions::~ScopedPartialRunOptions() { current = outer_; }

const RunOptions& PartialRunOptions() {
  return current != nullptr ? *current : RunOptions::default_instance();
}

}  // namespace staging
}  // namespace tensorflow
