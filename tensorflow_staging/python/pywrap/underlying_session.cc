// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/underlying_session.h"

#include <cstring>
#include <string>
#include <typeinfo>
#include <utility>

#include "pybind11/pybind11.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/python/client/session_ref.h"
#include "tensorflow_staging/python/pywrap/raise_if_error.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

// SessionRef exposes neither its session nor its lock. An explicit
// instantiation may name private members, so this one makes both accessible
// here. If upstream renames or retypes one of them, this no longer compiles.
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
  // Compares names because the library that holds the type_info of SessionRef
  // is not linked here.
  if (std::strcmp(typeid(*outer).name(), "N10tensorflow10SessionRefE") == 0) {
    return LockedSession(static_cast<SessionRef*>(outer));
  }
  // A session without Python's wrapper belongs to its creator, so this pointer
  // does not own it.
  return std::shared_ptr<Session>(std::shared_ptr<Session>(), outer);
}

TF_Session* SessionOfPython(py::handle session) {
  if (session.is_none()) return nullptr;
  // The types that TensorFlow's own modules have registered are known only to modules
  // of the same compiler and pybind11. The layout of an object is the same for all.
  const auto* const object =
      reinterpret_cast<const py::detail::instance*>(session.ptr());
  if (py::str(py::type::handle_of(session).attr("__name__"))
              .cast<std::string>() != "TF_Session" ||
      !object->simple_layout) {
    throw py::type_error("session must be Session._session.");
  }
  return static_cast<TF_Session*>(object->simple_value_holder[0]);
}

void WithSession(py::handle py_session,
                 absl::FunctionRef<Status(std::shared_ptr<Session>)> use) {
  TF_Session* const session = SessionOfPython(py_session);
  bool closed;
  Status status;
  {
    py::gil_scoped_release release;
    std::shared_ptr<Session> underlying =
        session == nullptr ? nullptr : UnderlyingSession(session);
    closed = underlying == nullptr;
    if (!closed) status = use(std::move(underlying));
  }
  if (closed) throw py::value_error("session is closed.");
  RaiseIfError(status);
}

}  // namespace staging
}  // namespace tensorflow
