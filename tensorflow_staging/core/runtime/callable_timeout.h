// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_CALLABLE_TIMEOUT_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_CALLABLE_TIMEOUT_H_

#include <cstdint>

#include "tensorflow_staging/core/framework/scoped_thread_value.h"

namespace tensorflow {
namespace staging {

// Sets how long a distributed session waits for the callables that the calling
// thread runs in the lifetime of this object. Session::RunCallable() takes no
// options, and such a session would otherwise give up after its
// operation_timeout_in_ms, whatever the options of the callable say.
//
// Must live on the stack of one thread. Scopes nest.
class ScopedCallableTimeout {
 public:
  // 0 leaves it to the session.
  explicit ScopedCallableTimeout(int64_t millis);

 private:
  const ScopedThreadValue<int64_t> millis_;
};

// Returns the timeout of the calling thread's innermost scope, in milliseconds,
// or `operation_timeout_in_ms`, the session's own, if there is none.
int64_t CallableTimeout(int64_t operation_timeout_in_ms);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_CALLABLE_TIMEOUT_H_
