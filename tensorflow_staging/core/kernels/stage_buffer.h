// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_STAGE_BUFFER_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_STAGE_BUFFER_H_

#include <atomic>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// The buffer of a kernel's stage: looked up in the device's resource manager,
// or made there, by the first run that asks, and kept from then on.
//
// The kernels of a stage own its buffer together; the manager knows it, and
// forgets it when the last of them goes. So it lives as long as the sessions
// whose graphs have the stage, even on a server, whose manager outlives them.
//
// Thread-safe.
class StageBuffer {
 public:
  // Reads the attributes; fails the construction if they are unusable.
  explicit StageBuffer(OpKernelConstruction* ctx);

  // `buffer` lives as long as this object. `kernel` is the owner of this
  // object.
  Status Get(OpKernelContext* ctx, const OpKernel& kernel,
             TensorBuffer** buffer) TF_LOCKS_EXCLUDED(mu_);

 private:
  TensorBuffer::Options options_;
  mutex mu_;
  core::RefCountPtr<TensorBuffer> owner_ TF_GUARDED_BY(mu_);
  // owner_, for reading without the lock.
  std::atomic<TensorBuffer*> found_{nullptr};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_STAGE_BUFFER_H_
