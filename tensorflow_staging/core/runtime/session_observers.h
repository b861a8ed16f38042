// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_SESSION_OBSERVERS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_SESSION_OBSERVERS_H_

#include <cstdint>
#include <functional>

namespace tensorflow {

class Session;

namespace staging {

// Code that runs steps of a session in its own threads must leave the session
// before the session is destroyed. The session does not know this code, so the
// code registers an observer here, which the session calls when it closes. All
// functions are thread-safe.

using SessionObserverId = int64_t;

// Requests one call of `on_closing` when `session` closes. The session waits
// until `on_closing` returns. Until then `on_closing` may use the session;
// after that, nothing may. `on_closing` must not close the session itself.
SessionObserverId ObserveSession(Session* session,
                                 std::function<void()> on_closing);

// Withdraws the request. The call of `on_closing` may have begun already, and
// may still be running when this returns.
void StopObservingSession(SessionObserverId id);

// Reports that `session` is closing and has cancelled its steps. Calls the
// observers concurrently and without holding a lock, and returns once all of
// them have returned, including those called by another thread that closes the
// same session. Session::Close calls this function; without observers it costs
// one lock.
void NotifySessionClosing(Session* session);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_SESSION_OBSERVERS_H_
