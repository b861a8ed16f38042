// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_MEMORY_H_
#define TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_MEMORY_H_

#include <cstdint>
#include <limits>
#include <map>

#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace staging {

// The memory of a fake GPU. Whoever does not wait for memory, such as a stage,
// gets only some of it, as if kernels had the rest.
class FakeGpuMemory : public AllocatorWrapper {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // Does not own `memory`.
  explicit FakeGpuMemory(Allocator* memory) : AllocatorWrapper(memory) {}

  // How many bytes there are from now on for whoever does not wait.
  void Limit(int64_t bytes) {
    absl::MutexLock l(&mu_);
    limit_ = bytes;
  }

  // How many bytes those have who did not wait.
  int64_t Taken() const {
    absl::MutexLock l(&mu_);
    return taken_;
  }

  void* AllocateRaw(size_t alignment, size_t bytes) override {
    return AllocatorWrapper::AllocateRaw(alignment, bytes);
  }
  void* AllocateRaw(size_t alignment, size_t bytes,
                    const AllocationAttributes& how) override {
    if (how.retry_on_failure) {
      return AllocatorWrapper::AllocateRaw(alignment, bytes, how);
    }
    absl::MutexLock l(&mu_);
    if (static_cast<int64_t>(bytes) > limit_ - taken_) return nullptr;
    void* const memory = AllocatorWrapper::AllocateRaw(alignment, bytes, how);
    if (memory != nullptr) {
      limited_[memory] = bytes;
      taken_ += bytes;
    }
    return memory;
  }
  void DeallocateRaw(void* memory) override {
    {
      absl::MutexLock l(&mu_);
      const auto found = limited_.find(memory);
      if (found != limited_.end()) {
        taken_ -= found->second;
        limited_.erase(found);
      }
    }
    AllocatorWrapper::DeallocateRaw(memory);
  }

  // The base class does not ask for these.
  absl::optional<tsl::AllocatorStats> GetStats() override {
    return wrapped()->GetStats();
  }
  bool ClearStats() override { return wrapped()->ClearStats(); }

 private:
  mutable absl::Mutex mu_;
  int64_t limit_ = kNoLimit;
  // What those have who did not wait.
  std::map<void*, int64_t> limited_;
  int64_t taken_ = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_FAKE_GPU_MEMORY_H_
