// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SESSION_MASTER_SESSIONS_H_
#define TENSORFLOW_STAGING_CORE_SESSION_MASTER_SESSIONS_H_

#include <string>

#include "tensorflow/core/distributed_runtime/call_options.h"
#include "tensorflow/core/distributed_runtime/master_session.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {
namespace staging {

// The sessions of the masters in this process, for clients in this process. A
// master begins a thread for each call, in which the session then waits for its
// workers; a producer, which has a thread of its own, needs no other.
//
// Thread-safe.
class MasterSessions {
 public:
  // Between the two calls, somebody else must own a reference to the session.
  static void Add(const std::string& handle, MasterSession* session);
  static void Remove(const std::string& handle);

  // Returns the session on which the calling thread may run a callable itself
  // (thread_pools/run_in_caller.h). Returns null if the client's master is not
  // in this process, if the session has ended, or if the call is to be given up
  // after a time, for which the master's thread is needed.
  static core::RefCountPtr<MasterSession> FindForCaller(
      bool master_is_local, const std::string& handle,
      CallOptions* call_options);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SESSION_MASTER_SESSIONS_H_
