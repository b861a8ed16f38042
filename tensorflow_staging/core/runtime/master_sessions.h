// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_MASTER_SESSIONS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_MASTER_SESSIONS_H_

#include <string>

#include "tensorflow/core/distributed_runtime/call_options.h"
#include "tensorflow/core/distributed_runtime/master_interface.h"
#include "tensorflow/core/distributed_runtime/master_session.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/master.pb.h"

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

  // Runs a callable, in the calling thread if that offers it
  // (runtime/staged_call.h) and no thread of the master is needed: the
  // master is in this process, knows the session, and need not give up the call
  // after a time.
  static Status RunCallable(MasterInterface* master, bool master_is_local,
                            CallOptions* call_options,
                            const RunCallableRequest& request,
                            RunCallableResponse* response);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_MASTER_SESSIONS_H_
