// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_ENV_H_
#define TENSORFLOW_STAGING_CORE_THREAD_POOLS_STAGE_THREAD_POOLS_ENV_H_

#include <set>
#include <string>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace staging {

// Processor cores by the numbers that the kernel gives them.
using Cores = std::set<int>;

// Returns the cores that the kernel lets threads of this process ask for. That
// may be more than the caller itself runs on: a process whose training is
// pinned to some cores can still give others to a stage.
Cores AvailableCores();

// The Env of one thread pool. Its threads have a name that the kernel knows,
// and run on the given cores alone; all else is Env::Default()'s.
//
// Thread-safe. Must outlive the threads it started.
class StageThreadPoolsEnv : public EnvWrapper {
 public:
  // `cores` is part of AvailableCores(); empty means wherever the kernel likes.
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
