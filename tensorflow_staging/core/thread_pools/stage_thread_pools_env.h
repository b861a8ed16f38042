// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_ENV_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_ENV_H_

#include <set>
#include <string>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace staging {

// Processor cores by the numbers that the kernel gives them.
using Cores = std::set<int>;

// Returns the cores that the kernel grants to the threads of this process on
// request. The calling thread itself may run on fewer: a process that pins its
// training to some cores can still give other cores to a stage.
Cores AvailableCores();

// Starts `count` threads, and ends them again. TensorFlow's own threads end the
// process if the system grants no more, and who asks for a thread pool may be
// the client of a server.
//
// Returns RESOURCE_EXHAUSTED if the system does not grant that many. Something
// else in the process may take them afterwards.
Status CheckCanStartThreads(int count);

// The Env of one thread pool. It sets the kernel's name of each thread and pins
// the thread to the given cores. Everything else is as in Env::Default().
//
// Thread-safe. Must outlive the threads it started.
class StageThreadPoolsEnv : public EnvWrapper {
 public:
  // `cores` must be a subset of AvailableCores(); if it is empty, the threads
  // are not pinned.
  StageThreadPoolsEnv(const std::string& thread_name, const Cores& cores);

  Thread* StartThread(const ThreadOptions& options, const string& name,
                      absl::AnyInvocable<void()> work) override;

 private:
  const std::string thread_name_;
  const Cores cores_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_ENV_H_
