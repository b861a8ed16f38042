// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_RANDOM_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorflow {
namespace scheduled {

// Numbers that depend on the seed alone, on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }
  // At least 0 and less than `bound`.
  int64_t Below(int64_t bound) { return Next() % bound; }
  int64_t Between(int64_t least, int64_t most) {
    return least + Below(most - least + 1);
  }
  bool OneIn(int64_t bound) { return Below(bound) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[Below(values.size())];
  }

  static uint64_t Mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_RANDOM_H_
