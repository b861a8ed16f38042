// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_DELIVERY_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_DELIVERY_H_

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

// Brings records from the host to where a step wants them: to the memory of a
// GPU, and its shares to that of further ones (record_shares.h). Thread-safe.
//
// A Put queues the copies. A record for which a GPU has no memory then stays on the
// host, and its Take queues the copies: as late as without a stage, but training
// goes on, and the stage holds fewer records from there on (TensorBuffer::HoldFewer).
// Where several producers keep an order, records get memory in that order: those that
// are made before an earlier one could take all of it, and would wait behind that.
class RecordDelivery : public std::enable_shared_from_this<RecordDelivery> {
 public:
  // `indices` are those of the tensors that are wanted in the memory of `device`,
  // and `shares` what further GPUs get. All must be such that
  // DataTypeCanUseMemcpy.
  RecordDelivery(std::string device, std::vector<int> indices,
                 std::vector<DeviceShare> shares);

  // What each GPU gets, that of the Take first. The host keeps what the Take's GPU
  // does not get.
  std::vector<DeviceShare> Destinations() const;
  // Whether the tensor with this index leaves the host.
  bool Wants(int index) const;
  // Returns an error if the session of `ctx` lacks a further GPU, which a graph names.
  Status CheckShares(const OpKernelContext& ctx) const {
    return shares_.Check(ctx);
  }
  // Whether a record, which anybody may have put, can be delivered.
  bool Fits(const std::vector<Tensor>& record) const;

  // Queues the copies of a record from the host, and appends its shares. `ctx` is of
  // a kernel of the same process. What uses the record must call AwaitContent.
  // Waits for memory. Returns RESOURCE_EXHAUSTED, and leaves the record, if there
  // is none.
  Status Deliver(const OpKernelContext& ctx,
                 std::vector<Tensor>* record) const {
    return Deliver(ctx, IfFull::kWait, record);
  }
  // The same for a Put, which does not wait. Returns why the record stays on the host,
  // with a mark, if it does: if there is no memory, or for another reason, which its
  // Take will meet.
  Status DeliverOrKeep(const OpKernelContext& ctx,
                       std::vector<Tensor>* record) const;
  // Marks a record that was delivered, for a Take that may want it elsewhere.
  void Mark(std::vector<Tensor>* record) const;
  // Lets a record that is not delivered yet own what will be copied: an array of
  // Python, for example, may be filled anew meanwhile.
  void Own(std::vector<Tensor>* record) const;

  // Removes the shares of a record whose mark was removed (RecordShares).
  Tensor RemoveShares(std::vector<Tensor>* record) const {
    return shares_.RemoveFrom(record);
  }

  // Copies a record without a mark and without shares back to the host. Waits.
  Status TakeBack(OpKernelContext* ctx, std::vector<Tensor>* record) const {
    return CopyToHost(ctx, layout_, record);
  }

 private:
  Status Deliver(const OpKernelContext& ctx, IfFull if_full,
                 std::vector<Tensor>* record) const;

  const RecordLayout layout_;
  const std::vector<DeviceShare> shared_;
  const RecordUpload upload_;
  const RecordShares shares_;
  // Those of all tensors that are copied.
  const std::set<int> copied_;
};

// What a Put has noted on a record.
struct RecordMark {
  // Null if there is no mark.
  std::shared_ptr<const RecordDelivery> by;
  // Not empty if the host has the record because there was no memory. Must live
  // until the record has got some.
  std::vector<std::shared_ptr<void>> kept_free;
};

// Removes the mark of a record, if it has one.
RecordMark RemoveMark(std::vector<Tensor>* record);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_DELIVERY_H_
