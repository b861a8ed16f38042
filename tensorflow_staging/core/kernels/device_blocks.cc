// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/device_blocks.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"

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

// The memory of a block while a record uses it.
class DeviceBlocks::Loan : public ::tensorflow::TensorBuffer {
 public:
  // The streams of a GPU and its EventMgr live as long as the process.
  Loan(Tensor memory, const DeviceBase::AcceleratorDeviceInfo& device,
       std::shared_ptr<DeviceBlocks> blocks)
      : ::tensorflow::TensorBuffer(DMAHelper::base(&memory)),
        memory_(std::move(memory)),
        stream_(device.stream),
        events_(device.event_mgr),
        blocks_(std::move(blocks)) {}

  ~Loan() override {
    events_->ThenExecute(
        stream_, [memory = std::move(memory_), blocks = std::move(blocks_)] {
          blocks->Return(memory);
        });
  }

  size_t size() const override { return memory_.TotalBytes(); }
  ::tensorflow::TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(AllocationDescription* proto) const override {
    proto->set_requested_bytes(size());
    proto->set_allocated_bytes(size());
  }

 private:
  Tensor memory_;
  se::Stream* const stream_;
  EventMgr* const events_;
  std::shared_ptr<DeviceBlocks> blocks_;
};

Status DeviceBlocks::Get(OpKernelContext* ctx, int64_t bytes, Tensor* block,
                         bool* in_use) {
  const DeviceBase::AcceleratorDeviceInfo* device =
      ctx->device()->tensorflow_accelerator_device_info();
  if (device == nullptr || device->stream == nullptr ||
      device->event_mgr == nullptr) {
    return errors::Internal("Device ", ctx->device()->name(),
                            " has no stream with events.");
  }
  Tensor memory;
  {
    mutex_lock l(mu_);
    *in_use = !Reuse(bytes, &memory);
  }
  if (*in_use) {
    TF_RETURN_IF_ERROR(
        ctx->allocate_temp(DT_INT8, TensorShape({RoundUp(bytes)}), &memory));
  }
  const TensorShape shape = memory.shape();
  const core::RefCountPtr<Loan> loan(
      new Loan(std::move(memory), *device, shared_from_this()));
  *block = Tensor(DT_INT8, shape, loan.get());
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
