// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/thread_trial.h"

#include <exception>
#include <thread>  // NOLINT
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace staging {

Status CheckCanStartThreads(int count) {
  Status status;
  Notification end;
  std::vector<std::thread> threads;
  threads.reserve(count);
  try {
    while (static_cast<int>(threads.size()) < count) {
      threads.emplace_back([&end]() { end.WaitForNotification(); });
    }
  } catch (const std::exception& error) {
    status = errors::ResourceExhausted("The process needs ", count,
                                       " more threads, but can start only ",
                                       threads.size(), ": ", error.what());
  }
  end.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace staging
}  // namespace tensorflow
