// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_SHARES_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_SHARES_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/device_shares.h"
#include "tensorflow_staging/core/records/record_upload.h"

namespace tensorflow {
namespace staging {

// How the shares of a record (device_shares.h) get to their accelerators:
//
//   1. The Put copies each share, and adds its tensors to the record.
//   2. The Take removes them, and gives them all to each accelerator of the step,
//      as one tensor in host memory. So nothing here waits for the stream of the
//      accelerator that has the Take.
//   3. An op there takes its own share out of that (kShareOp).
//
// A share thus lives as long as the record, and then as long as the step has it.

// Sets `*shares` to what the attributes of a Put say. Returns INVALID_ARGUMENT if
// these are wrong, or if a tensor of a share is not in host memory, beside an
// accelerator, or cannot be copied as bytes.
Status ReadSharesOfPut(const OpKernelConstruction& ctx,
                       std::vector<DeviceShare>* shares);

// Sets `*shares` to what the attributes of a Take say, and `*gives` to whether its
// last output, which belongs to no tensor of a record, gives them to the
// accelerators. Returns INVALID_ARGUMENT if these are wrong.
Status ReadSharesOfTake(const OpKernelConstruction& ctx,
                        std::vector<DeviceShare>* shares, bool* gives);

// The shares of all records of a stage. The copies for an accelerator are on a
// stream of its own, so none waits for another.
//
// Thread-safe.
class RecordShares {
 public:
  explicit RecordShares(std::vector<DeviceShare> shares);

  bool empty() const { return uploads_.empty(); }
  // How many tensors a record has for them.
  int num_tensors() const { return static_cast<int>(indices_->size()); }

  // Returns INVALID_ARGUMENT if the session of `ctx` lacks an accelerator.
  Status Check(const OpKernelContext& ctx) const;

  // Queues the copies of a record from the host, and appends the tensors of its
  // shares to `copies`. `ctx` is that of a kernel of the same process. Returns
  // RESOURCE_EXHAUSTED if there is no memory, INVALID_ARGUMENT if the session lacks
  // an accelerator, or INTERNAL if one has refused a copy.
  Status Queue(const OpKernelContext& ctx, IfFull if_full,
               const std::vector<Tensor>& record,
               std::vector<Tensor>* copies) const;

  // Adds what says, while it lives, that a record is on the host for want of
  // memory (RecordUpload::KeepOneFree).
  void KeepOneFree(std::vector<std::shared_ptr<void>>* kept) const;

  // Removes the tensors of the shares from the end of `record`, which has at least
  // so many. If there are any, returns the tensor that gives each accelerator its
  // share.
  Tensor RemoveFrom(std::vector<Tensor>* record) const;

 private:
  struct OfDevice {
    DeviceShare share;
    std::unique_ptr<RecordUpload> upload;
  };

  std::vector<OfDevice> uploads_;
  // In the record, of the tensors of all shares.
  const std::shared_ptr<std::vector<int>> indices_;

  TF_DISALLOW_COPY_AND_ASSIGN(RecordShares);
};

// Takes the tensors `indices` of a record out of `shares`, which RemoveFrom has
// returned, in the memory of `device`. Kernels that are queued there from now on
// wait until they have been copied. Returns INVALID_ARGUMENT if `shares` is another
// tensor, or has no such share for the device.
Status TakeShare(const Tensor& shares, const std::vector<int>& indices,
                 const DeviceBase& device, std::vector<Tensor>* tensors);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_SHARES_H_
