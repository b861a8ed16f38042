// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_RECORD_UPLOAD_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_RECORD_UPLOAD_H_

#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/records/device_blocks.h"

namespace tensorflow {
namespace staging {

// Copies tensors of records from the host to a GPU, as UploadPlan says.
//
// The copies of a record are queued at once, and nobody waits for them but what
// uses the record: AwaitContent (lent_tensor.h) orders its kernels behind them.
// The copies wait for queued kernels only if the record needs more memory than
// earlier records have given back (DeviceBlocks); the caller does not.
//
// Thread-safe.
class RecordUpload {
 public:
  // `indices` are those of the tensors to copy. Their types must be such that
  // DataTypeCanUseMemcpy.
  explicit RecordUpload(std::vector<int> indices)
      : indices_(std::move(indices)),
        blocks_(std::make_shared<DeviceBlocks>()) {}

  // Queues the copies of a record, and replaces its tensors by those in the
  // memory of `gpu`, which must always be the same. Keeps references to tensors of
  // the host until they have been copied. Returns RESOURCE_EXHAUSTED, and leaves
  // the record, if there is no memory, or INTERNAL if the GPU has refused a copy.
  Status Queue(DeviceBase* gpu, IfFull if_full,
               std::vector<Tensor>* record) const;

  // While the result lives, a record is on the host for want of memory.
  std::shared_ptr<void> KeepOneFree() const { return blocks_->KeepOneFree(); }

  const DeviceBlocks& blocks() const { return *blocks_; }

 private:
  const std::vector<int> indices_;
  const std::shared_ptr<DeviceBlocks> blocks_;

  TF_DISALLOW_COPY_AND_ASSIGN(RecordUpload);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_RECORD_UPLOAD_H_
