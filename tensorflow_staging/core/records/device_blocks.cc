// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/device_blocks.h"

#include <algorithm>
#include <utility>

#include "tensorflow_staging/core/records/device_memory.h"
#include "tensorflow_staging/core/records/lent_tensor.h"

namespace tensorflow {
namespace staging {
namespace {

// Rounds a size up by at most a quarter, so that records of similar sizes can
// use each other's blocks.
int64_t RoundUp(int64_t bytes) {
  int64_t unit = 256;
  while (unit * 8 <= bytes) unit *= 2;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Status DeviceBlocks::Get(DeviceBase* gpu, int64_t bytes,
                         std::shared_ptr<CopyEvent> content, Tensor* block,
                         bool* in_use) {
  KernelStream stream;
  TF_RETURN_IF_ERROR(KernelStream::Of(*gpu, &stream));
  Tensor memory;
  {
    mutex_lock l(mu_);
    *in_use = !Reuse(bytes, &memory);
  }
  if (*in_use) {
    TF_RETURN_IF_ERROR(AllocateOn(gpu, AllocatorAttributes(), DT_INT8,
                                  TensorShape({RoundUp(bytes)}), &memory));
  }
  *block = LendTensor(
      std::move(memory), stream,
      [blocks = shared_from_this()](Tensor given_back) {
        blocks->Return(std::move(given_back));
      },
      std::move(content));
  mutex_lock l(mu_);
  ++lent_;
  most_lent_ = std::max(most_lent_, lent_);
  return OkStatus();
}

bool DeviceBlocks::Reuse(int64_t bytes, Tensor* memory) {
  const int64_t largest = 2 * RoundUp(bytes);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->NumElements() >= bytes && it->NumElements() <= largest) {
      *memory = std::move(*it);
      free_.erase(it);
      return true;
    }
  }
  return false;
}

size_t DeviceBlocks::NumFree() const {
  mutex_lock l(mu_);
  return free_.size();
}

void DeviceBlocks::Return(Tensor memory) {
  // Destroyed without the lock.
  Tensor too_many;
  mutex_lock l(mu_);
  --lent_;
  free_.push_back(std::move(memory));
  // Blocks of sizes that are no longer used would stay for ever.
  if (lent_ + free_.size() > most_lent_) {
    too_many = std::move(free_.front());
    free_.pop_front();
  }
}

}  // namespace staging
}  // namespace tensorflow
