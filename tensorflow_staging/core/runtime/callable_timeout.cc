// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/callable_timeout.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local int64_t current_millis = 0;

}  // namespace

ScopedCallableTimeout::ScopedCallableTimeout(int64_t millis)
    : millis_(&current_millis, millis) {}

int64_t CallableTimeout(int64_t operation_timeout_in_ms) {
  return current_millis > 0 ? current_millis : operation_timeout_in_ms;
}

}  // namespace staging
}  // namespace tensorflow
