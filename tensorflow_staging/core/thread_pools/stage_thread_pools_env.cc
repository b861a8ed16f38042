// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools_env.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/framework/thread_name.h"

namespace tensorflow {
namespace staging {
namespace {

void RunOn(const Cores& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    // The cores were available when the pool was created.
    LOG(ERROR) << "A thread of a stage thread pool is not pinned, because the "
                  "process may no longer use the cores of its cpu_affinity: "
               << std::strerror(errno);
  }
}

}  // namespace

Cores AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // A thread that asks for all cores is granted those that the process may use.
  // The request may move the thread to another core, so a separate thread makes
  // it.
  std::thread([&set] {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all);
    sched_getaffinity(0, sizeof(set), &set);
  }).join();
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

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

StageThreadPoolsEnv::StageThreadPoolsEnv(const std::string& thread_name,
                                         const Cores& cores)
    : EnvWrapper(Env::Default()), thread_name_(thread_name), cores_(cores) {}

Thread* StageThreadPoolsEnv::StartThread(const ThreadOptions& options,
                                         const string& name,
                                         absl::AnyInvocable<void()> work) {
  return EnvWrapper::StartThread(options, name,
                                 [this, work = std::move(work)]() mutable {
                                   SetKernelThreadName(thread_name_);
                                   RunOn(cores_);
                                   work();
                                 });
}

}  // namespace staging
}  // namespace tensorflow
