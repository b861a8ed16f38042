// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/common_runtime/thread_name.h"

#include <pthread.h>

#include <cstddef>
#include <string>

namespace tensorflow {
namespace staging {
namespace {

// TASK_COMM_LEN, less the terminating zero.
constexpr size_t kKernelNameBytes = 15;

}  // namespace

void SetStageThreadName(const std::string& stage) {
  const std::string name = ("stage_" + stage).substr(0, kKernelNameBytes);
  pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace staging
}  // namespace tensorflow
