// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUN_POOL_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUN_POOL_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/master.pb.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace tensorflow {
namespace staging {

// Adds the stage thread pool that `run_options` choose, if any, to the options
// with which a master sends the run to its workers.
//
// Returns INVALID_ARGUMENT if the run also asks for other threads.
Status ForwardStageThreadPool(const RunOptions& run_options,
                              ExecutorOpts* options);

// The same for the run that a client requests from a master: the options of a
// callable are in `callable`, and those of another run are in the request.
inline Status ForwardStageThreadPool(const RunCallableRequest& request,
                                     const CallableOptions& callable,
                                     ExecutorOpts* options) {
  return ForwardStageThreadPool(callable.run_options(), options);
}
template <typename RunStepRequest>
Status ForwardStageThreadPool(const RunStepRequest& request,
                              const CallableOptions& callable,
                              ExecutorOpts* options) {
  return ForwardStageThreadPool(request.options(), options);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_WORKER_RUN_POOL_H_
