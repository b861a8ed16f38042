// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/thread_name.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace tensorflow {
namespace staging {
namespace {

// TASK_COMM_LEN without the terminating zero.
constexpr size_t kKernelNameBytes = 15;

std::atomic<int> num_stage_threads{0};

}  // namespace

void SetKernelThreadName(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, kKernelNameBytes).c_str());
}

ScopedStageThread::ScopedStageThread(const std::string& stage) {
  SetKernelThreadName("stage_" + stage);
  ++num_stage_threads;
}

ScopedStageThread::~ScopedStageThread() { --num_stage_threads; }

int ScopedStageThread::Count() { return num_stage_threads; }

}  // namespace staging
}  // namespace tensorflow
