// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ADDRESS_MAP_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ADDRESS_MAP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"

namespace tensorflow {
namespace staging {

// Objects by the addresses of others, whose layout belongs to TensorFlow's
// library. Divided, because each staged run looks some up. Thread-safe.
template <typename T>
class AddressMap {
 public:
  // Returns null if there is none.
  std::shared_ptr<T> Find(const void* address) {
    Part& part = PartOf(address);
    tf_shared_lock l(part.mu);
    const auto it = part.objects.find(address);
    return it == part.objects.end() ? nullptr : it->second;
  }

  // Returns the object of the address: `object`, unless there is one already.
  std::shared_ptr<T> Add(const void* address, std::shared_ptr<T> object) {
    Part& part = PartOf(address);
    mutex_lock l(part.mu);
    return part.objects.try_emplace(address, std::move(object)).first->second;
  }

  // Returns what was there, so that it is not destroyed with the lock.
  std::shared_ptr<T> Remove(const void* address) {
    Part& part = PartOf(address);
    mutex_lock l(part.mu);
    const auto it = part.objects.find(address);
    if (it == part.objects.end()) return nullptr;
    std::shared_ptr<T> removed = std::move(it->second);
    part.objects.erase(it);
    return removed;
  }

  std::vector<std::shared_ptr<T>> All() {
    std::vector<std::shared_ptr<T>> all;
    for (Part& part : parts_) {
      tf_shared_lock l(part.mu);
      for (const auto& [address, object] : part.objects) all.push_back(object);
    }
    return all;
  }

 private:
  struct Part {
    mutex mu;
    absl::flat_hash_map<const void*, std::shared_ptr<T>> objects
        TF_GUARDED_BY(mu);
  };

  Part& PartOf(const void* address) {
    // Fibonacci hashing: managers on stacks have equal last bits.
    return parts_[(reinterpret_cast<std::uintptr_t>(address) *
                   uint64_t{0x9E3779B97F4A7C15}) >>
                  60];
  }

  std::array<Part, 16> parts_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ADDRESS_MAP_H_
