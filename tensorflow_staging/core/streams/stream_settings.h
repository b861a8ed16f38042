// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_

#include <vector>

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// The largest RewriterConfig.multi_stream_opts.multi_stream_num. Each stream
// is a device with threads, allocators and queues of its own, so a larger
// number is a mistake.
constexpr int kMaxStreams = 64;

// What a session's configuration says about the streams of its GPUs.
struct StreamSettings {
  // Whether RewriterConfig.use_multi_stream is ON. Otherwise the numbers of
  // streams in graphs have no effect.
  bool enabled = false;
  // How many streams each GPU has.
  int streams = 1;
  // The part of a GPU's memory that each stream has; their sum is 1. Empty if
  // the configuration does not divide it.
  std::vector<double> memory_shares;
  // OptimizerOptions.stage_multi_stream: whether stages run on the streams that
  // they ask for.
  bool stages = false;
};

// Reads the settings of `config`. Looks at no others.
//
// Returns INVALID_ARGUMENT if the number of streams is out of range or does not
// have as many memory shares, or if a share is not a positive number, and
// UNIMPLEMENTED if the partition policy is not implemented.
Status ReadStreamSettings(const ConfigProto& config, StreamSettings* settings);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_STREAM_SETTINGS_H_
