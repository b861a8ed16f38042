// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_HANDLE_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_HANDLE_H_

#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"

namespace tensorflow {
namespace staging {

using StepBufferRef = core::RefCountPtr<StepBuffer>;

// Returns the buffer whose handle is `tensor`, the input of an op.
inline StatusOr<StepBufferRef> StepBufferOf(const Tensor& tensor) {
  if (tensor.NumElements() != 1) {
    return errors::InvalidArgument("buffer must be a scalar, got shape ",
                                   tensor.shape().DebugString(), ".");
  }
  const ResourceHandle& handle = tensor.flat<ResourceHandle>()(0);
  if (!handle.IsRefCounting()) {
    return errors::InvalidArgument("'", handle.name(),
                                   "' is no handle of a StepBuffer.");
  }
  TF_ASSIGN_OR_RETURN(StepBuffer * buffer, handle.GetResource<StepBuffer>());
  return tsl::core::GetNewRef(buffer);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_BUFFER_HANDLE_H_
