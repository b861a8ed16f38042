// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_

#include <string>

namespace tensorflow {
namespace staging {

// Gives the calling thread a name that the kernel knows, so that `top -H`,
// debuggers and profilers show whose it is; Env::StartThread does not. The
// kernel keeps 15 bytes: a longer name is cut.
void SetKernelThreadName(const std::string& name);

// The same for a thread that runs the stage of that name.
void SetStageThreadName(const std::string& stage);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_THREAD_NAME_H_
