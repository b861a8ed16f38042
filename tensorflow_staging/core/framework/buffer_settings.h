// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_SETTINGS_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_SETTINGS_H_

#include <cstdint>

#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

// What a program chooses for the buffer of a stage that SmartStage creates.
struct BufferSettings {
  // How many records it holds; kAutotune lets it choose.
  int64_t capacity = kDefaultCapacity;
  // How many bytes it holds in host memory, and in that of each device; 0 sets no
  // bound.
  int64_t capacity_bytes = 0;
  int64_t device_capacity_bytes = 0;
  // How many milliseconds a put waits for room before it drops its record;
  // 0 sets no limit.
  int64_t timeout_millis = kDefaultTimeoutMillis;
  // Whether several producers make its records, in order (kIsOrderedAttr).
  bool is_ordered = false;
  // The GPU stream that the region asks for; 0 asks for none.
  int64_t stream_id = 0;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_BUFFER_SETTINGS_H_
