// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/sync_on_finish.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local bool no_sync = false;

}  // namespace

ScopedNoSyncOnFinish::ScopedNoSyncOnFinish() : no_sync_(&no_sync, true) {}

bool SyncOnFinish(const RunOptions& options) {
  return !no_sync || options.trace_level() >= RunOptions::HARDWARE_TRACE;
}

}  // namespace staging
}  // namespace tensorflow
