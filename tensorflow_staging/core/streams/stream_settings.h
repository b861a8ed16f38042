// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// The largest RewriterConfig.multi_stream_opts.multi_stream_num. Each stream
// is a device with threads, allocators and queues of its own, so a larger
// number is a mistake.
constexpr int kMaxStreams = 64;

// Reads how many streams `config` asks for on each GPU: 1, unless
// RewriterConfig.use_multi_stream is ON.
//
// Returns INVALID_ARGUMENT if the number is out of range, and UNIMPLEMENTED if
// the partition policy is not implemented. Looks at no other settings.
Status ReadStreamCount(const ConfigProto& config, int* streams);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_
