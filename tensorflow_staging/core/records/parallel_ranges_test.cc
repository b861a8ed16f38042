// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/parallel_ranges.h"

#include <gtest/gtest.h>

#include <chrono>  // NOLINT
#include <cstdint>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {
namespace staging {
namespace {

class ParallelRangesTest : public ::testing::Test {
 protected:
  ParallelRangesTest() : pool_(Env::Default(), "test", 4) {
    threads_.num_threads = 4;
    threads_.workers = &pool_;
  }

  thread::ThreadPool pool_;
  DeviceBase::CpuWorkerThreads threads_;
};

// Each part waits until all have begun.
TEST_F(ParallelRangesTest, PartsRunAtTheSameTime) {
  BlockingCounter begun(3);
  mutex mu;
  std::vector<int> times(350);
  InParallelRanges(threads_, 350, /*least=*/100,
                   [&](int64_t begin, int64_t end) {
                     begun.DecrementCount();
                     EXPECT_TRUE(begun.WaitFor(std::chrono::seconds(20)));
                     mutex_lock l(mu);
                     for (int64_t i = begin; i < end; ++i) ++times[i];
                   });
  EXPECT_EQ(times, std::vector<int>(350, 1));
}

TEST_F(ParallelRangesTest, LittleWorkStaysInTheCallersThread) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  InParallelRanges(
      threads_, 199, /*least=*/100,
      [&](int64_t begin, int64_t end) { parts.emplace_back(begin, end); });
  EXPECT_EQ(parts, (std::vector<std::pair<int64_t, int64_t>>{{0, 199}}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
