// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/parallel_ranges.h"

#include <algorithm>
#include <optional>

#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {
namespace staging {

void InParallelRanges(const DeviceBase::CpuWorkerThreads& threads, int64_t size,
                      int64_t least,
                      const std::function<void(int64_t, int64_t)>& work) {
  const int64_t parts = std::min<int64_t>(threads.num_threads, size / least);
  if (parts <= 1) {
    work(0, size);
    return;
  }
  threads.workers->ParallelFor(
      size,
      thread::ThreadPool::SchedulingParams(
          thread::ThreadPool::SchedulingStrategy::kFixedBlockSize,
          /*cost_per_unit=*/std::nullopt,
          /*block_size=*/(size + parts - 1) / parts),
      work);
}

}  // namespace staging
}  // namespace tensorflow
