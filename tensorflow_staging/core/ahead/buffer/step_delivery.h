// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/records/record_copies.h"
#include "tensorflow_staging/core/records/record_shares.h"
#include "tensorflow_staging/core/records/record_upload.h"

namespace tensorflow {
namespace staging {

// Records of a divided function are made on the CPU. What the rest uses in the
// memory of a GPU is copied there ahead of the step, as in sessions with
// stage_subgraph_on_cpu:
//
//   1. When the rest is placed, a pass moves its Take to the GPU, or to one of
//      several (step_delivery_pass.h).
//   2. The Take tells its buffer where it wants the records.
//   3. From then on a Put queues the copies. The records before are copied by
//      their Takes.
//
// Where a Take wants the tensors of its records. Thread-safe.
class StepDelivery : public std::enable_shared_from_this<StepDelivery> {
 public:
  // `indices` are those of the tensors that are wanted in the memory of `device`,
  // and `shares` what further GPUs get. All must be such that
  // DataTypeCanUseMemcpy.
  StepDelivery(std::string device, std::vector<int> indices,
               std::vector<DeviceShare> shares);

  // Whether the tensor with this index leaves the host.
  bool Wants(int index) const;
  // Whether a record, which anybody may have put, can be delivered.
  bool Fits(const std::vector<Tensor>& record) const;

  // Queues the copies of a record from the host, and marks it. `ctx` is of a
  // kernel of the same process. What uses the record must call AwaitContent.
  Status Deliver(const OpKernelContext& ctx, std::vector<Tensor>* record) const;

  // Removes the shares of a record whose mark was removed (RecordShares).
  Tensor RemoveShares(std::vector<Tensor>* record) const {
    return shares_.RemoveFrom(record);
  }

  // Copies a record without a mark and without shares back to the host. Waits.
  Status TakeBack(OpKernelContext* ctx, std::vector<Tensor>* record) const {
    return CopyToHost(ctx, layout_, record);
  }

 private:
  const RecordLayout layout_;
  const RecordUpload upload_;
  const RecordShares shares_;
  // Those of all tensors that are copied.
  const std::set<int> copied_;
};

// Removes the mark of a record that was delivered, and returns by what; null if
// the host has the record.
std::shared_ptr<const StepDelivery> RemoveMark(std::vector<Tensor>* record);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_BUFFER_STEP_DELIVERY_H_
