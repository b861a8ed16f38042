// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_KERNELS_PACKED_COPY_H_
#define TENSORFLOW_STAGING_CORE_KERNELS_PACKED_COPY_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/kernels/device_blocks.h"

namespace tensorflow {
namespace staging {

// Copies tensors of a kernel's records from the host to the kernel's GPU, all
// tensors of a record in one copy: packs them in pinned memory, copies that on
// the stream for copies from the host, and cuts tensors from the copy.
//
// Neither a thread nor the stream of the GPU's kernels waits for the copy. It
// waits for queued kernels only if the record needs more memory than earlier
// records have given back (DeviceBlocks).
//
// Thread-safe.
class PackedCopy {
 public:
  using Record = std::vector<Tensor>;
  using Done = absl::AnyInvocable<void(const Status&, Record)>;

  // `indices` are those of the tensors to copy. Their types must be such that
  // DataTypeCanUseMemcpy.
  explicit PackedCopy(std::vector<int> indices)
      : indices_(std::move(indices)),
        blocks_(std::make_shared<DeviceBlocks>()) {}

  // Calls `done` with `record` after its tensors have been copied, or with the
  // error of an allocator. `ctx` must live until then. `done` may run in the
  // thread that calls back after events, and must not block.
  void Start(OpKernelContext* ctx, Record record, Done done) const;

  const DeviceBlocks& blocks() const { return *blocks_; }

 private:
  const std::vector<int> indices_;
  const std::shared_ptr<DeviceBlocks> blocks_;

  TF_DISALLOW_COPY_AND_ASSIGN(PackedCopy);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_KERNELS_PACKED_COPY_H_
