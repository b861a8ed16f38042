// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow creates its logger in a thread when it first prepares a graph, and
// joins that thread only if something asks for the logger later. In a process
// that ends soon, nothing does: a thread leak, if the thread has ended by then.

#include "tensorflow/tsl/platform/logger.h"

namespace tensorflow {
namespace staging {
namespace {

// Joins the thread before the tests begin.
[[maybe_unused]] tsl::Logger* const logger = tsl::Logger::GetSingleton();

}  // namespace
}  // namespace staging
}  // namespace tensorflow
