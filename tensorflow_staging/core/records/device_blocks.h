// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_BLOCKS_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_BLOCKS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/framework/steady_condition.h"
#include "tensorflow_staging/core/records/kernel_stream.h"

namespace tensorflow {
namespace staging {

// What to do if a GPU has no memory for a record.
enum class IfFull {
  // A Put gives up at once, and its record stays on the host.
  kGiveUp,
  // A Take waits for memory, ten seconds at most, as TensorFlow's allocators do.
  kWait,
};

// Blocks of a GPU's memory that hold one record each, for one kernel.
//
// A copy into memory from an allocator of a GPU has to wait for the stream of
// the step, because queued kernels may still use that memory (lent_tensor.h).
// These blocks are lent instead: the next record uses a block after no kernel
// does any more, and a copy into it waits for nothing.
//
// The number of blocks is that of the records that exist at the same time. If the
// GPU has no memory for one, its record stays on the host until a step takes it.
// As long as there is such a record, later ones leave a block free for it: they
// could hold all memory, and would be taken only after it.
//
// Thread-safe. Must be owned by a std::shared_ptr: blocks share ownership.
class DeviceBlocks : public std::enable_shared_from_this<DeviceBlocks> {
 public:
  DeviceBlocks() = default;

  // Sets `*block` to a tensor of at least `bytes` bytes (DT_INT8) in the memory
  // of `gpu`, and `*in_use` to whether queued kernels may still
  // use that memory: a new block, which comes from the device's allocator.
  // `content` is the event of the copy into the block (AwaitContent).
  //
  // The block is given back when the last tensor that shares its memory is
  // destroyed. Returns RESOURCE_EXHAUSTED if there is no memory.
  Status Get(DeviceBase* gpu, int64_t bytes, IfFull if_full,
             std::shared_ptr<CopyEvent> content, Tensor* block, bool* in_use)
      TF_LOCKS_EXCLUDED(mu_);

  // While the result lives, a record is on the host for want of memory.
  std::shared_ptr<void> KeepOneFree();

  // How many blocks no record uses, for tests.
  size_t NumFree() const TF_LOCKS_EXCLUDED(mu_);

 private:
  // Ends a loan: nothing uses `memory` any more.
  void Return(Tensor memory) TF_LOCKS_EXCLUDED(mu_);
  // Sets `*memory` to a free block, or to a new one if `*is_new`.
  Status Find(DeviceBase* gpu, int64_t bytes, IfFull if_full, Tensor* memory,
              bool* is_new) TF_LOCKS_EXCLUDED(mu_);
  // Makes room for a new block after an allocation has failed: waits for a block
  // that is given back, for a moment at most, or frees those of other sizes.
  void MakeRoom(bool waits) TF_LOCKS_EXCLUDED(mu_);
  // Removes a free block that fits from free_.
  bool Reuse(int64_t bytes, Tensor* memory) TF_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable mutex mu_;
  // The blocks that no record uses, the one that is free for longest first.
  std::deque<Tensor> free_ TF_GUARDED_BY(mu_);
  // How many blocks records use, and the most that there have been.
  size_t lent_ TF_GUARDED_BY(mu_) = 0;
  size_t most_lent_ TF_GUARDED_BY(mu_) = 0;
  SteadyCondition given_back_;
  // How many callers wait for it.
  int waiting_ TF_GUARDED_BY(mu_) = 0;
  // How many records are on the host for want of memory.
  std::atomic<int64_t> kept_out_{0};

  TF_DISALLOW_COPY_AND_ASSIGN(DeviceBlocks);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_DEVICE_BLOCKS_H_
