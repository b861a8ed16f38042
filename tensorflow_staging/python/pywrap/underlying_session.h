// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_
#define TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_

#include <memory>

#include "tensorflow/c/c_api_internal.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace staging {

// The session that runs the graph, below the wrapper (SessionRef) that
// TensorFlow's Python session puts around it; null if the session is closed.
//
// Threads that outlast a call from Python have to use this one: the wrapper
// holds a lock during Close that each of its runs needs to return, so that a
// session that waits for its prefetchers while closing would wait forever.
std::shared_ptr<Session> UnderlyingSession(TF_Session* session);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PYTHON_PYWRAP_UNDERLYING_SESSION_H_
