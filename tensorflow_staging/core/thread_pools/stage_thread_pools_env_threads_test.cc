// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools_env.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::StartsWith;

TEST(ThreadTrialTest, AFewThreadsCanStart) {
  EXPECT_EQ(CheckCanStartThreads(0), OkStatus());
  EXPECT_EQ(CheckCanStartThreads(20), OkStatus());
}

TEST(ThreadTrialTest, ThreadsThatTheSystemRefusesAreAnError) {
  // Address space for a few stacks.
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit few = before;
  few.rlim_cur = pages * getpagesize() + (rlim_t{256} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &few), 0);
  const Status status = CheckCanStartThreads(2000);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(errors::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              StartsWith("The process needs 2000 more threads, but can start"));
  EXPECT_EQ(CheckCanStartThreads(20), OkStatus());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
