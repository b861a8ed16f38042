// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_STAGED_RUN_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_STAGED_RUN_H_

#include <atomic>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// A run of a staged part that the buffer has admitted. It is kept in the
// container of its step, which every runtime empties once all kernels of the
// step have ended, whatever the outcome; that ends the run.
//
// One step may have runs of several stages. Thread-safe.
class StagedRun : public ResourceBase {
 public:
  // Keeps, in the step of `ctx`, the run that `buffer` has just admitted. Ends
  // it at once if there is an error.
  static Status Keep(OpKernelContext* ctx, TensorBuffer* buffer);

  // Says that the run of `buffer` in the step of `ctx`, if there is one, has
  // put its record.
  static void NotePut(OpKernelContext* ctx, const TensorBuffer* buffer);

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
