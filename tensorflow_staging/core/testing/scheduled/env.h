// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ENV_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ENV_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow_staging/core/testing/scheduled/mutex.h"
#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

namespace tensorflow {
namespace scheduled {

// tensorflow::Thread: the destructor waits for the thread's end.
class Thread {
 public:
  Thread(std::string name, absl::AnyInvocable<void()> body)
      : end_(std::make_shared<Notification>()) {
    auto shared = std::make_shared<absl::AnyInvocable<void()>>(std::move(body));
    Scheduler::Current()->Start(std::move(name), [shared, end = end_] {
      (*shared)();
      *shared = nullptr;
      end->Notify();
    });
  }
  ~Thread() { end_->WaitForNotification(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

 private:
  const std::shared_ptr<Notification> end_;
};

struct ThreadOptions {};

// tensorflow::Env, as far as it starts threads.
class Env {
 public:
  static Env* Default() {
    static Env env;
    return &env;
  }

  Thread* StartThread(const ThreadOptions&, const std::string& name,
                      absl::AnyInvocable<void()> body) {
    return new Thread(name, std::move(body));
  }
  void SchedClosure(absl::AnyInvocable<void()> call) {
    auto shared = std::make_shared<absl::AnyInvocable<void()>>(std::move(call));
    Scheduler::Current()->Start("a closure", [shared] {
      (*shared)();
      *shared = nullptr;
    });
  }
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ENV_H_
