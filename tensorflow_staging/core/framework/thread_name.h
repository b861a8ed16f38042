// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_

#include <string>

namespace tensorflow {
namespace staging {

// Sets the name of the calling thread in the kernel, so that `top -H`,
// debuggers and profilers show the thread's owner; Env::StartThread does not
// set it. The kernel keeps only the first 15 bytes.
void SetKernelThreadName(const std::string& name);

// Names the calling thread after the stage that it runs, and counts it, until
// this object is destroyed. Threads that it begins meanwhile, such as those of
// TensorFlow's pools, inherit the name, and are not counted.
class ScopedStageThread {
 public:
  explicit ScopedStageThread(const std::string& stage);
  ~ScopedStageThread();
  ScopedStageThread(const ScopedStageThread&) = delete;
  ScopedStageThread& operator=(const ScopedStageThread&) = delete;

  // How many such threads this process has.
  static int Count();
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_
