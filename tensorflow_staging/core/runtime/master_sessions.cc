// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/master_sessions.h"

#include <cstdint>
#include <unordered_map>

#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/runtime/staged_call.h"

namespace tensorflow {
namespace staging {
namespace {

// A call with at least this limit has none: the runs of a stage ask for ten
// years, because 0 would mean the limit of the session.
constexpr int64_t kNoLimitMillis = int64_t{365} * 24 * 3600 * 1000;

struct Sessions {
  mutex mu;
  std::unordered_map<std::string, MasterSession*> by_handle TF_GUARDED_BY(mu);
};

Sessions* GetSessions() {
  static auto* const sessions = new Sessions;
  return sessions;
}

core::RefCountPtr<MasterSession> Find(const std::string& handle) {
  Sessions* const sessions = GetSessions();
  mutex_lock l(sessions->mu);
  const auto found = sessions->by_handle.find(handle);
  if (found == sessions->by_handle.end()) return nullptr;
  return tsl::core::GetNewRef(found->second);
}

}  // namespace

void MasterSessions::Add(const std::string& handle, MasterSession* session) {
  Sessions* const sessions = GetSessions();
  mutex_lock l(sessions->mu);
  sessions->by_handle[handle] = session;
}

void MasterSessions::Remove(const std::string& handle) {
  Sessions* const sessions = GetSessions();
  mutex_lock l(sessions->mu);
  sessions->by_handle.erase(handle);
}

Status MasterSessions::RunCallable(MasterInterface* master,
                                   bool master_is_local,
                                   CallOptions* call_options,
                                   const RunCallableRequest& request,
                                   RunCallableResponse* response) {
  if (RunsInCaller() && master_is_local &&
      call_options->GetTimeout() >= kNoLimitMillis) {
    const auto session = Find(request.session_handle());
    if (session != nullptr) {
      return session->RunCallable(call_options, request, response);
    }
  }
  return master->RunCallable(call_options, &request, response);
}

}  // namespace staging
}  // namespace tensorflow
