// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_GPU_STREAMS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_GPU_STREAMS_H_

#include <vector>

#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// Turns use_multi_stream on, with `streams` streams on each GPU.
inline void UseMultiStream(int streams, SessionOptions* options,
                           const std::vector<float>& memory_shares = {}) {
  RewriterFields fields;
  fields.set_use_multi_stream(RewriterConfig::ON);
  fields.mutable_multi_stream_opts()->set_multi_stream_num(streams);
  for (const float share : memory_shares) {
    fields.mutable_multi_stream_opts()->add_memory_shares(share);
  }
  CHECK(options->config.mutable_graph_options()
            ->mutable_rewrite_options()
            ->MergeFromString(fields.SerializeAsString()));
}

// Options of a session in which each of `gpus` GPUs has `streams` virtual
// devices. Stream s of GPU g is the device GPU:(s * gpus + g).
inline SessionOptions OptionsWithStreams(int gpus, int streams) {
  SessionOptions options;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    auto* devices = options.config.mutable_gpu_options()
                        ->mutable_experimental()
                        ->add_virtual_devices();
    for (int stream = 0; stream < streams; ++stream) {
      devices->add_memory_limit_mb(32);
      devices->add_device_ordinal(stream);
    }
  }
  return options;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_GPU_STREAMS_H_
