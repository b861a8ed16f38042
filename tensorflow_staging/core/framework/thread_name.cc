// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/thread_name.h"

#include <pthread.h>

#include <cstddef>
#include <string>

namespace tensorflow {
namespace staging {
namespace {

// TASK_COMM_LEN without the terminating zero.
constexpr size_t kKernelNameBytes = 15;

}  // namespace

void SetKernelThreadName(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, kKernelNameBytes).c_str());
}

void SetStageThreadName(const std::string& stage) {
  SetKernelThreadName("stage_" + stage);
}

}  // namespace staging
}  // namespace tensorflow
