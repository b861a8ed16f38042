// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SESSION_SESSION_OBSERVERS_H_
#define TENSORFLOW_STAGING_CORE_SESSION_SESSION_OBSERVERS_H_

#include <cstdint>
#include <functional>

namespace tensorflow {

class Session;

namespace staging {

// Whoever runs steps of a session in threads of its own has to be out of it
// before the session dies. The session does not know them, so they leave their
// wish to be told here. All functions are thread-safe.

using SessionObserverId = int64_t;

// Asks for one call of `on_closing` when `session` closes. The session waits
// for it: it may use the session until it returns, and nothing may after that.
// It must not close the session itself.
SessionObserverId ObserveSession(Session* session,
                                 std::function<void()> on_closing);

// Withdraws the request. `on_closing` may have begun already, and may still be
// running when this returns.
void StopObservingSession(SessionObserverId id);

// Says that `session` is closing and has cancelled its steps. Calls the
// observers, at the same time and without a lock, and returns once all of them
// have returned, also those that another thread, which closes the session too,
// is calling. Called by Session::Close; costs one lock where nobody observes.
void NotifySessionClosing(Session* session);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SESSION_SESSION_OBSERVERS_H_
