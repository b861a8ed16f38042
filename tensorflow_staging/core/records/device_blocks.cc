// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/device_blocks.h"

#include <algorithm>
#include <chrono>  // NOLINT
#include <utility>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
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

// TensorFlow's allocators wait as long.
constexpr std::chrono::seconds kLongestWait{10};
// Other memory may be freed without a block that is given back.
constexpr std::chrono::milliseconds kMoment{10};

}  // namespace

Status DeviceBlocks::Get(DeviceBase* gpu, int64_t bytes, IfFull if_full,
                         std::shared_ptr<CopyEvent> content, Tensor* block,
                         bool* in_use) {
  KernelStream stream;
  TF_RETURN_IF_ERROR(KernelStream::Of(*gpu, &stream));
  Tensor memory;
  TF_RETURN_IF_ERROR(Find(gpu, bytes, if_full, &memory, in_use));
  *block = LendTensor(
      std::move(memory), stream,
      [blocks = shared_from_this()](Tensor given_back) {
        blocks->Return(std::move(given_back));
      },
      std::move(content),
      strings::StrCat(gpu->parsed_name().type, ":", gpu->parsed_name().id));
  mutex_lock l(mu_);
  ++lent_;
  most_lent_ = std::max(most_lent_, lent_);
  return OkStatus();
}

Status DeviceBlocks::Find(DeviceBase* gpu, int64_t bytes, IfFull if_full,
                          Tensor* memory, bool* is_new) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  const bool gives_up = if_full == IfFull::kGiveUp;
  for (bool is_first = true;; is_first = false) {
    const size_t kept_free = gives_up && kept_out_ > 0 ? 1 : 0;
    *is_new = true;
    {
      mutex_lock l(mu_);
      if (free_.size() > kept_free && Reuse(bytes, memory)) {
        *is_new = false;
        return OkStatus();
      }
      if (free_.size() < kept_free) {
        return errors::ResourceExhausted(
            gpu->name(), " has no ", bytes,
            " bytes for a record, because an earlier one waits for memory.");
      }
    }
    const Status status = AllocateOn(gpu, AllocatorAttributes(), DT_INT8,
                                     TensorShape({RoundUp(bytes)}), memory,
                                     /*after_waiting=*/false);
    const bool is_over = gives_up
                             ? !is_first || kept_free > 0
                             : std::chrono::steady_clock::now() >= deadline;
    if (status.ok() || is_over) return status;
    MakeRoom(/*waits=*/!gives_up);
  }
}

void DeviceBlocks::MakeRoom(bool waits) {
  // Destroyed without the lock.
  std::deque<Tensor> freed;
  mutex_lock l(mu_);
  freed.swap(free_);
  if (!waits || !freed.empty()) return;
  ++waiting_;
  given_back_.WaitFor(&mu_, kMoment);
  --waiting_;
}

std::shared_ptr<void> DeviceBlocks::KeepOneFree() {
  ++kept_out_;
  return std::shared_ptr<void>(
      nullptr, [blocks = shared_from_this()](void*) { --blocks->kept_out_; });
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
  if (waiting_ > 0) given_back_.NotifyAll();
  // Blocks of sizes that are no longer used would stay for ever.
  if (lent_ + free_.size() > most_lent_) {
    too_many = std::move(free_.front());
    free_.pop_front();
  }
}

}  // namespace staging
}  // namespace tensorflow
