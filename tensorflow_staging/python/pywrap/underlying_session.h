// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "pybind11/pybind11.h"
#include "tensorflow/c/c_api_internal.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace staging {

// Returns the session that runs the graph, from inside the wrapper (SessionRef)
// that TensorFlow's Python session puts around it; null if the session is
// closed.
//
// A thread that outlasts a call from Python must use this session instead of
// the wrapper. The wrapper holds a lock during Close that each of its runs
// needs in order to return, so a session that waits for its runners while it
// closes would wait forever.
//
// Waits for the same lock, and so for a Close that is in progress; a server
// that does not answer may keep that from ending. Call without the GIL.
std::shared_ptr<Session> UnderlyingSession(TF_Session* session);

// Returns what `Session._session` of TensorFlow's Python session holds; null for None.
// Raises TypeError for any other object.
TF_Session* SessionOfPython(pybind11::handle session);

// Calls `use` with the C++ session, without the GIL: it may wait, and so may a
// thread that closes the session, as long as the session's server takes to
// answer. Raises ValueError if the session is closed, and the error of `use`.
void WithSession(pybind11::handle py_session,
                 absl::FunctionRef<Status(std::shared_ptr<Session>)> use);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_
