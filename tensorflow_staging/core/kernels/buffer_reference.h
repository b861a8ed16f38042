// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_REFERENCE_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_REFERENCE_H_

#include <atomic>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"

namespace tensorflow {
namespace staging {

// A kernel's reference to the buffer of its stage. The kernel's first run looks
// the buffer up in a resource manager, or creates it there, and later runs
// reuse it. The manager is that of the kernel's device; for an accelerator, it
// is that of the first CPU of the same task. So the ops of a stage that only
// control the buffer can run on the CPU while its records are on an
// accelerator.
//
// The kernels of a stage own its buffer together. The manager does not own it,
// and forgets it when the last of these kernels is destroyed. The buffer thus
// lives as long as the sessions whose graphs contain the stage, even on a
// server, whose manager outlives them.
//
// Thread-safe.
class BufferReference {
 public:
  // Reads the kernel's attributes; fails the construction if they are invalid.
  explicit BufferReference(OpKernelConstruction* ctx);

  // Sets `*buffer` to the buffer, which lives at least as long as this object.
  // `kernel` must be the owner of this object.
  //
  // Returns INVALID_ARGUMENT if `kernel` puts or takes records in other memory
  // than another kernel does. A Take that borrows records
  // (kBorrowsFromAttr) counts as being on the device of the Puts, which must
  // hand them over (kHandsOverAttr).
  Status Get(OpKernelContext* ctx, const OpKernel& kernel,
             TensorBuffer** buffer) TF_LOCKS_EXCLUDED(mu_);

 private:
  Status Find(OpKernelContext* ctx, const OpKernel& kernel)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns where the records of `kernel`, the owner of this object, are.
  std::string PlaceOfRecords(const OpKernelContext& ctx,
                             const OpKernel& kernel) const;

  TensorBuffer::Options options_;
  // Whether records are handed over, if the owner is no Take.
  bool hands_over_ = false;
  // The device from which the owner, a Take, borrows records; or empty.
  std::string borrows_from_;
  mutex mu_;
  core::RefCountPtr<TensorBuffer> owner_ TF_GUARDED_BY(mu_);
  // owner_.get(), readable without the lock.
  std::atomic<TensorBuffer*> found_{nullptr};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_BUFFER_REFERENCE_H_
