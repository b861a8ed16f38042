// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_PLAN_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_PLAN_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace staging {

// How the tensors of a record get from the host into one block of a GPU's
// memory, one behind the other.
//
//   * A tensor of at least kLeastDirectBytes in pinned memory is *direct*: the
//     GPU copies it from where it is.
//   * Any other tensor is *packed*: the host copies it into pinned memory, from
//     where the GPU copies all of them together. A copy costs more than packing
//     if it is small, and a GPU does not copy from memory that is not pinned
//     while the host goes on.
//
// The packed tensors are in front, so that they are one range of bytes.
struct UploadPlan {
  // Chosen, not measured: on an H200, packing won with tensors of 4 KB, and
  // lost with tensors of 400 KB.
  static constexpr int64_t kLeastDirectBytes = int64_t{64} << 10;

  struct Part {
    // Of the tensor in the record.
    int index;
    const char* source;
    int64_t bytes;
    // In the block.
    int64_t offset;
  };

  // The tensors must be such that DataTypeCanUseMemcpy. Those without elements
  // are in no part.
  std::vector<Part> packed;
  std::vector<Part> direct;
  // The length of the range of the packed parts, and that of the block.
  int64_t packed_bytes = 0;
  int64_t bytes = 0;
};

// Returns the plan for the tensors of `record` with these indices.
UploadPlan PlanUpload(const std::vector<Tensor>& record,
                      const std::vector<int>& indices);

// Copies the bytes of the packed parts that are in the range from `begin` to
// `end` to the same places of `packed`.
void PackRange(const UploadPlan& plan, int64_t begin, int64_t end,
               char* packed);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_UPLOAD_PLAN_H_
