// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_MESSAGES_BUFFER_STATS_PB_H_
#define TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_MESSAGES_BUFFER_STATS_PB_H_

#include <cstdint>
#include <string>
#include <utility>

namespace tensorflow {
namespace staging {

// What core/protobuf/buffer_stats.proto says, as a class of its own with the
// functions of the generated one that core/ uses. Only sessions send the message to
// another process. A generated class would tie the plugin to one version of
// protobuf's C++, and each TensorFlow has another.
class BufferStats {
 public:
#define STAGING_FIELD(type, name)                           \
 public:                                                    \
  const type& name() const { return name##_; }              \
  void set_##name(type name) { name##_ = std::move(name); } \
                                                            \
 private:                                                   \
  type name##_{};
#define STAGING_MESSAGE(type, name)            \
 public:                                       \
  const type& name() const { return name##_; } \
  type* mutable_##name() { return &name##_; }  \
                                               \
 private:                                      \
  type name##_;

  class Waits {
    STAGING_FIELD(int64_t, calls)
    STAGING_FIELD(int64_t, waits)
    STAGING_FIELD(int64_t, total_micros)
    STAGING_FIELD(int64_t, p50_micros)
    STAGING_FIELD(int64_t, p99_micros)
  };

  class Steps {
    STAGING_FIELD(int64_t, count)
    STAGING_FIELD(int64_t, total_micros)
    STAGING_FIELD(int64_t, wait_micros)
  };

  STAGING_FIELD(int64_t, capacity)
  STAGING_FIELD(bool, tunes_capacity)
  STAGING_FIELD(int64_t, capacity_bytes)
  STAGING_FIELD(int64_t, records)
  STAGING_FIELD(int64_t, bytes)
  STAGING_FIELD(int64_t, put)
  STAGING_FIELD(int64_t, taken)
  STAGING_FIELD(int64_t, dropped)
  STAGING_FIELD(int64_t, discarded)
  STAGING_FIELD(int64_t, waiting_puts)
  STAGING_FIELD(int64_t, waiting_takes)
  STAGING_MESSAGE(Waits, put_waits)
  STAGING_MESSAGE(Waits, take_waits)
  STAGING_FIELD(std::string, state)
  STAGING_FIELD(int32_t, error_code)
  STAGING_FIELD(std::string, error_message)
  STAGING_FIELD(int64_t, room)
  STAGING_FIELD(bool, capacity_settled)
  STAGING_MESSAGE(Steps, steps)

#undef STAGING_FIELD
#undef STAGING_MESSAGE
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_IN_PLACE_OF_MESSAGES_BUFFER_STATS_PB_H_
