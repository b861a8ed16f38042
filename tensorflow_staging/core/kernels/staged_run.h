// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_STAGED_RUN_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_STAGED_RUN_H_

#include <atomic>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// A run of a region that the buffer has admitted. The step container of the
// session's run owns it (keep_in_step.h); the destructor ends the run.
//
// One execution by a session may contain runs of several stages. Thread-safe.
class StagedRun : public ResourceBase {
 public:
  // Stores the run that `buffer` has just admitted in the step container of
  // `ctx`. After an error, the run has ended. `manager` must be the buffer's.
  static Status Keep(OpKernelContext* ctx, ResourceMgr* manager,
                     TensorBuffer* buffer);

  // Notes that the run of `buffer` in the step container of `ctx`, if there is
  // one, has put its record.
  static void NotePut(OpKernelContext* ctx, ResourceMgr* manager,
                      const TensorBuffer* buffer);

  ~StagedRun() override;

  std::string DebugString() const override;

 private:
  explicit StagedRun(TensorBuffer* buffer);

  const core::RefCountPtr<TensorBuffer> buffer_;
  std::atomic<bool> has_put_{false};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_STAGED_RUN_H_
