// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RECORDS_PARALLEL_RANGES_H_
#define TENSORFLOW_STAGING_CORE_RECORDS_PARALLEL_RANGES_H_

#include <cstdint>
#include <functional>

#include "tensorflow/core/framework/device_base.h"

namespace tensorflow {
namespace staging {

// Divides the range from 0 to `size` among as many of `threads` as get at least
// `least` each, and calls `work` with the begin and the end of each part. The
// caller works as well, and returns when all parts are done.
void InParallelRanges(const DeviceBase::CpuWorkerThreads& threads, int64_t size,
                      int64_t least,
                      const std::function<void(int64_t, int64_t)>& work);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RECORDS_PARALLEL_RANGES_H_
