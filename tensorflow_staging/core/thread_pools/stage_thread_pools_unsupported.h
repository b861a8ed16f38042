// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// Distributed sessions do not support stage thread pools. Each function returns
// UNIMPLEMENTED, with a message that says what to do, if the options ask for
// one.

// Checks the options of a session that is about to be created.
Status CheckNoStageThreadPools(const SessionOptions& options);

// Checks the options of a run, a callable or a partial run.
Status CheckNoStageThreadPool(const RunOptions& run_options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_
