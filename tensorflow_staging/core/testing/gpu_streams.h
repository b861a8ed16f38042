// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_GPU_STREAMS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_GPU_STREAMS_H_

#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace staging {

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
