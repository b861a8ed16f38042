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

struct Observer {
  Session* session = nullptr;
  std::function<void()> on_closing;
};

struct Observers {
  mutex mu;
  condition_variable changed;
  SessionObserverId next_id TF_GUARDED_BY(mu) = 0;
  std::map<SessionObserverId, Observer> by_id TF_GUARDED_BY(mu);
  // For each session, how many threads are at step 2 of NotifySessionClosing.
  std::map<Session*, int> calling TF_GUARDED_BY(mu);
};

// Never destroyed: a session may close during the exit of the process.
Observers* GetObservers() {
  static auto* const observers = new Observers;
  return observers;
}

}  // namespace

SessionObserverId ObserveSession(Session* session,
                                 std::function<void()> on_closing) {
  Observers* const observers = GetObservers();
  mutex_lock l(observers->mu);
  const SessionObserverId id = observers->next_id++;
  observers->by_id.emplace(id, Observer{session, std::move(on_closing)});
  return id;
}

void StopObservingSession(SessionObserverId id) {
  Observers* const observers = GetObservers();
  // Declared before the lock, and thus destroyed after its release: the
  // destructor of an observer may run any code.
  std::map<SessionObserverId, Observer>::node_type removed;
  mutex_lock l(observers->mu);
  removed = observers->by_id.extract(id);
}

void NotifySessionClosing(Session* session) {
  Observers* const observers = GetObservers();
  std::vector<std::function<void()>> due;
  mutex_lock l(observers->mu);
  // 1. Remove the session's observers, so that each is called only once.
  for (auto it = observers->by_id.begin(); it != observers->by_id.end();) {
    if (it->second.session == session) {
      due.push_back(std::move(it->second.on_closing));
      it = observers->by_id.erase(it);
    } else {
      ++it;
    }
  }
  // 2. Call them.
  if (!due.empty()) {
    ++observers->calling[session];
    observers->mu.unlock();
    CallAtOnce(due);
    due.clear();
    observers->mu.lock();
    if (--observers->calling[session] == 0) observers->calling.erase(session);
    observers->changed.notify_all();
  }
  // 3. Wait for the observers that another thread has removed and is calling.
  while (observers->calling.count(session) > 0) observers->changed.wait(l);
}

}  // namespace staging
}  // namespace tensorflow
