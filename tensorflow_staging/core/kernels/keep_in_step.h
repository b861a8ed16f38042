// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_KEEP_IN_STEP_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_KEEP_IN_STEP_H_

#include <string>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Gives `resource`, which a kernel of stage `stage` has begun, to the step
// container of the session's run, in `manager` and under `name`. Every runtime
// empties that container after the last kernel of the run has ended, whatever
// the outcome. After an error, `resource` has been released.
template <typename Resource>
Status KeepInStep(OpKernelContext* ctx, ResourceMgr* manager,
                  const std::string& name, const std::string& stage,
                  core::RefCountPtr<Resource> resource) {
  if (ctx->step_container() == nullptr) {
    return errors::Internal(ctx->op_kernel().type_string(), " of stage '",
                            stage,
                            "' must run in a session: its run has no step "
                            "container.");
  }
  return ctx->step_container()->Create(manager, name, resource.release());
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_KEEP_IN_STEP_H_
