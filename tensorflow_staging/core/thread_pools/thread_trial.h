// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_THREAD_TRIAL_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_THREAD_TRIAL_H_

#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Starts `count` threads, and ends them again. TensorFlow's own threads end the
// process if the system grants no more, and who asks for a thread pool may be
// the client of a server.
//
// Returns RESOURCE_EXHAUSTED if the system does not grant that many. Something
// else in the process may take them afterwards.
Status CheckCanStartThreads(int count);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_THREAD_TRIAL_H_
