// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_STREAMS_STREAM_DEVICES_H_
#define TENSORFLOW_STAGING_CORE_STREAMS_STREAM_DEVICES_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// TensorFlow's GPU devices compute on one stream each. So a GPU with several
// streams is several virtual devices.

// A physical GPU that TensorFlow can use.
struct PhysicalGpu {
  // The number by which visible_device_list knows it.
  int id = 0;
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// Chooses the GPUs that a session with `config` uses, in the order of their
// devices: /gpu:0 is the first. They are all of `physical`, the ids of the GPUs
// that TensorFlow can use, unless GPUOptions.visible_device_list or
// device_count["GPU"] say otherwise.
//
// Returns INVALID_ARGUMENT if visible_device_list is not a list of distinct
// numbers of `physical`, or if `config` itself divides the GPUs into virtual
// devices.
Status ChooseGpus(const ConfigProto& config, const std::vector<int>& physical,
                  std::vector<int>* chosen);

// Divides each of `gpus` into `streams` virtual devices by setting `options`.
// Stream `k` of GPU `i` of `gpus` becomes the device
// /gpu:<k * gpus.size() + i>. So /gpu:0 is still the first GPU, /gpu:1 the
// second one, and so on.
//
// `memory_shares` are the parts of a GPU's memory that its streams have, with a
// sum of 1, or empty. If it is empty, all streams of a GPU have the same limit:
// without per_process_gpu_memory_fraction, each may grow until the GPU is full;
// with a fraction, each has an equal part of it. allow_growth keeps its meaning
// with a fraction, and is turned on without.
//
// Kernels on stream 0, which runs the step, go before those on other streams.
//
// Returns INVALID_ARGUMENT if the fraction is negative, and RESOURCE_EXHAUSTED
// if a GPU does not have enough memory.
Status DivideGpus(int streams, const std::vector<double>& memory_shares,
                  const std::vector<PhysicalGpu>& gpus, GPUOptions* options);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_STREAMS_STREAM_DEVICES_H_
