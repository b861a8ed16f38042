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

// Where the tensors of a stage's records are.
struct RecordLayout {
  // The device in whose memory `on_device` are; empty if the host has them all.
  std::string device;
  std::vector<int> on_device;
};

// Replaces the tensors `layout.on_device` of a record by copies in host memory.
// Returns the error of an allocator or of a copy, with the tensor's number; then
// the record stays as it is.
//
// All copies are under way at the same time, and the caller waits for them. So
// it must not be a thread that calls back after events. A copy begins after all
// that is queued on the stream that computes the records.
Status CopyToHost(OpKernelContext* ctx, const RecordLayout& layout,
                  std::vector<Tensor>* record);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_COPIES_H_
