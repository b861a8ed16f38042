// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ORDERED_MAP_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ORDERED_MAP_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow_staging/core/testing/scheduled/mutex.h"

namespace tensorflow {
namespace scheduled {

// staging::AddressMap, of which nothing depends on the addresses: these differ
// from one process to the next.
template <typename T>
class OrderedMap {
 public:
  std::shared_ptr<T> Find(const void* address) {
    MutexLock l(mu_);
    const auto found = Position(address);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> Add(const void* address, std::shared_ptr<T> object) {
    MutexLock l(mu_);
    auto found = Position(address);
    if (found == objects_.end()) {
      found = objects_.emplace(found, address, std::move(object));
    }
    return found->second;
  }
  std::shared_ptr<T> Remove(const void* address) {
    MutexLock l(mu_);
    const auto found = Position(address);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> removed = std::move(found->second);
    objects_.erase(found);
    return removed;
  }
  std::vector<std::shared_ptr<T>> All() {
    MutexLock l(mu_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [address, object] : objects_) all.push_back(object);
    return all;
  }

 private:
  using Objects = std::vector<std::pair<const void*, std::shared_ptr<T>>>;

  typename Objects::iterator Position(const void* address) {
    return absl::c_find_if(objects_, [address](const auto& entry) {
      return entry.first == address;
    });
  }

  Mutex mu_;
  // In the order in which they were added.
  Objects objects_;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_ORDERED_MAP_H_
