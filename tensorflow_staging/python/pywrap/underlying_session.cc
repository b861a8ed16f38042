// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/underlying_session.h"

#include <cstring>
#include <typeinfo>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/python/client/session_ref.h"

namespace tensorflow {
namespace staging {
namespace {

// SessionRef shows neither its session nor its lock. An explicit instantiation
// may name private members, and so gives them a public name here; if upstream
// renames or retypes one of them, this stops compiling.
template <auto kSession, auto kLock>
struct SessionRefMembers {
  friend std::shared_ptr<Session> LockedSession(SessionRef* ref) {
    mutex_lock l(ref->*kLock);
    return ref->*kSession;
  }
};
std::shared_ptr<Session> LockedSession(SessionRef* ref);
template struct SessionRefMembers<&SessionRef::session_,
                                  &SessionRef::run_lock_>;

}  // namespace

std::shared_ptr<Session> UnderlyingSession(TF_Session* session) {
  Session* outer = session->session;
  // By name: the class's type_info is in a library that is not linked here.
  if (std::strcmp(typeid(*outer).name(), "N10tensorflow10SessionRefE") == 0) {
    return LockedSession(static_cast<SessionRef*>(outer));
  }
  // Not owned: whoever made a session without Python's wrapper keeps it.
  return std::shared_ptr<Session>(std::shared_ptr<Session>(), outer);
}

}  // namespace staging
}  // namespace tensorflow
