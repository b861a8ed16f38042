// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/session_observers.h"

#include <map>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {
namespace {

// Calls all functions at the same time, because each of them may have to wait
// for a while. Returns when all of them have returned. `functions` must not be
// empty.
void CallAtOnce(const std::vector<std::function<void()>>& functions) {
  BlockingCounter others(functions.size() - 1);
  for (size_t i = 1; i < functions.size(); ++i) {
    Env::Default()->SchedClosure([&function = functions[i], &others]() {
      function();
      others.DecrementCount();
    });
  }
  functions.front()();
  others.Wait();
}

class SessionObservers {
 public:
  // Never destroyed: a session may close during the exit of the process.
  static SessionObservers* Get() {
    static auto* const observers = new SessionObservers;
    return observers;
  }

  SessionObserverId Add(Session* session, std::function<void()> on_closing)
      TF_LOCKS_EXCLUDED(mu_) {
    mutex_lock l(mu_);
    const SessionObserverId id = next_id_++;
    observers_.emplace(id, Observer{session, std::move(on_closing)});
    return id;
  }

  void Remove(SessionObserverId id) TF_LOCKS_EXCLUDED(mu_) {
    // Declared before the lock, and thus destroyed after its release: the
    // destructor of an observer may run any code.
    Observer removed;
    mutex_lock l(mu_);
    auto it = observers_.find(id);
    if (it == observers_.end()) return;
    removed = std::move(it->second);
    observers_.erase(it);
  }

  void Notify(Session* session) TF_LOCKS_EXCLUDED(mu_) {
    std::vector<std::function<void()>> due;
    mutex_lock l(mu_);
    // 1. Remove the session's observers, so that each is called only once.
    for (auto it = observers_.begin(); it != observers_.end();) {
      if (it->second.session == session) {
        due.push_back(std::move(it->second.on_closing));
        it = observers_.erase(it);
      } else {
        ++it;
      }
    }
    // 2. Call them.
    if (!due.empty()) {
      ++calling_[session];
      mu_.unlock();
      CallAtOnce(due);
      due.clear();
      mu_.lock();
      if (--calling_[session] == 0) calling_.erase(session);
      changed_.notify_all();
    }
    // 3. Wait for the observers that another thread has removed and is calling.
    while (calling_.count(session) > 0) changed_.wait(l);
  }

 private:
  struct Observer {
    Session* session = nullptr;
    std::function<void()> on_closing;
  };

  mutex mu_;
  condition_variable changed_;
  SessionObserverId next_id_ TF_GUARDED_BY(mu_) = 0;
  std::map<SessionObserverId, Observer> observers_ TF_GUARDED_BY(mu_);
  // For each session, how many threads are at step 2 of Notify.
  std::map<Session*, int> calling_ TF_GUARDED_BY(mu_);
};

}  // namespace

SessionObserverId ObserveSession(Session* session,
                                 std::function<void()> on_closing) {
  return SessionObservers::Get()->Add(session, std::move(on_closing));
}

void StopObservingSession(SessionObserverId id) {
  SessionObservers::Get()->Remove(id);
}

void NotifySessionClosing(Session* session) {
  SessionObservers::Get()->Notify(session);
}

}  // namespace staging
}  // namespace tensorflow
