// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools_env.h"

#include <pthread.h>
#include <sched.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace tensorflow {
namespace staging {
namespace {

Cores CoresOfThisThread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

struct Observed {
  std::string kernel_name;
  std::string name;
  Cores cores;
};

Observed ObserveAThread(const std::string& name, const Cores& cores) {
  Observed observed;
  StageThreadPoolsEnv env(name, cores);
  // The destructor of Thread joins the thread.
  std::unique_ptr<Thread>(
      env.StartThread(ThreadOptions(), "whole " + name, [&] {
        char buffer[16];
        EXPECT_EQ(pthread_getname_np(pthread_self(), buffer, sizeof(buffer)),
                  0);
        observed.kernel_name = buffer;
        EXPECT_TRUE(Env::Default()->GetCurrentThreadName(&observed.name));
        observed.cores = CoresOfThisThread();
      }));
  return observed;
}

TEST(StageThreadPoolsEnvTest, KernelKnowsTheName) {
  EXPECT_EQ(ObserveAThread("pool_inter_op", {}).kernel_name, "pool_inter_op");
}

TEST(StageThreadPoolsEnvTest, KernelKeepsTheBeginningOfALongName) {
  const Observed observed = ObserveAThread("StageThreadPool_1_inter_op", {});
  EXPECT_EQ(observed.kernel_name, "StageThreadPool");
  EXPECT_EQ(observed.name.find("whole StageThreadPool_1_inter_op"), 0);
}

TEST(StageThreadPoolsEnvTest, ThreadsRunOnTheirCores) {
  for (const int core : AvailableCores()) {
    EXPECT_EQ(ObserveAThread("pinned", {core}).cores, Cores({core}));
  }
}

TEST(StageThreadPoolsEnvTest, WithoutCoresThreadsAreNotPinned) {
  EXPECT_EQ(ObserveAThread("free", {}).cores, CoresOfThisThread());
}

TEST(StageThreadPoolsEnvTest, AvailableCoresLeavesTheCallersCoresUnchanged) {
  const Cores before = CoresOfThisThread();
  const int first = *before.begin();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(first, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  const Cores available = AvailableCores();
  EXPECT_EQ(CoresOfThisThread(), Cores({first}));

  CPU_ZERO(&set);
  for (const int core : before) CPU_SET(core, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  for (const int core : before) EXPECT_EQ(available.count(core), 1) << core;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
