// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_STALE_RUN_ERROR_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_STALE_RUN_ERROR_H_

#include <string>

#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The error by which a worker tells the producer of `stage` that a run failed only
// because something else gets what it has read. A payload says so: gRPC cuts long
// messages, and the runtime adds to them.
Status StaleRunError(const std::string& stage);
bool IsStaleRunError(const Status& status);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_STALE_RUN_ERROR_H_
