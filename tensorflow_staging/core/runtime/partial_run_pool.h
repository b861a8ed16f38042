// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_PARTIAL_RUN_POOL_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_PARTIAL_RUN_POOL_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"

namespace tensorflow {
namespace staging {

// Provides RunOptions for the partial runs that the calling thread sets up
// during the lifetime of this object, because Session::PRunSetup() has no
// argument for them. Of these options, only the choice of a stage thread pool
// applies to partial runs.
//
// Must live on the stack of one thread. `options` must outlive it. Scopes nest.
class ScopedPartialRunOptions {
 public:
  explicit ScopedPartialRunOptions(const RunOptions& options);

 private:
  const ScopedThreadValue<const RunOptions*> options_;
};

// Returns the options of the calling thread's innermost scope, or the default
// options outside any scope.
const RunOptions& PartialRunOptions();

// Returns UNIMPLEMENTED if PartialRunOptions() choose a stage thread pool. For
// sessions of servers: a request to set up a partial run has no RunOptions.
Status CheckNoPoolForPartialRun();

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_PARTIAL_RUN_POOL_H_
