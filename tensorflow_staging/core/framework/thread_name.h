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

// Does the same for a thread that runs the stage `stage`.
void SetStageThreadName(const std::string& stage);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_
