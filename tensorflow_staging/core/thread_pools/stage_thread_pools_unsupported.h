// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

// For a kind of session that has no stage thread pools: each function returns
// UNIMPLEMENTED, which says so and what to do, if the options ask for one.

// Of a session that is about to be made.
Status CheckNoStageThreadPools(const SessionOptions& options);

// Of a run, a callable or a partial run.
Status CheckNoStageThreadPool(const RunOptions& run_options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_UNSUPPORTED_H_
