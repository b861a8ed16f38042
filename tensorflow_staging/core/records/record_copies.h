// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Where the tensors of a stage's records are, and what they are called.
struct RecordLayout {
  // The device in whose memory `on_device` are; empty if the host has them all.
  std::string device;
  std::vector<int> on_device;
  // Of each tensor, the name in the program's graph; empty if unknown.
  std::vector<std::string> tensor_names;
};

// Replace the tensors `layout.on_device` of a record by copies in host memory,
// or in the memory of the accelerator that keeps the records in a buffer.
// Return the error of an allocator or of a copy, with the tensor's name; then
// the record stays as it is.
//
// All copies are under way at the same time, and the caller waits for them. So
// it must not be a thread that calls back after events. A copy to the host
// begins after all that is queued on the stream that computes the records, and
// a copy to the accelerator after all that may still use the memory there.
Status CopyToHost(OpKernelContext* ctx, const RecordLayout& layout,
                  std::vector<Tensor>* record);
Status CopyToDevice(OpKernelContext* ctx, const RecordLayout& layout,
                    std::vector<Tensor>* record);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_
