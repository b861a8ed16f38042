// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/staged_call.h"

#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tensorflow_staging/core/runtime/staged_run_threads.h"
#include "tensorflow_staging/core/testing/tensor_buffer_calls.h"

namespace tensorflow {
namespace staging {
namespace {

TEST(StagedCallTest, WithoutAScopeARunIsTheSessionsOwn) {
  EXPECT_TRUE(SyncOnFinish(RunOptions()));
  EXPECT_EQ(CallableTimeout(7), 7);
  EXPECT_FALSE(RunsInCaller());
  EXPECT_EQ(TakeStagedRun(), nullptr);
  EXPECT_EQ(TakeStagedRunThreads(), nullptr);
}

TEST(StagedCallTest, TheInnermostScopeOfTheThreadCounts) {
  StagedCall call;
  call.timeout_millis = 5;
  call.runs_in_caller = true;
  const ScopedStagedCall outer(call);
  {
    const ScopedStagedCall inner{StagedCall()};
    EXPECT_FALSE(SyncOnFinish(RunOptions()));
    EXPECT_EQ(CallableTimeout(7), 7);
    EXPECT_FALSE(RunsInCaller());
  }
  EXPECT_FALSE(SyncOnFinish(RunOptions()));
  EXPECT_EQ(CallableTimeout(7), 5);
  EXPECT_TRUE(RunsInCaller());
  std::thread([] {
    EXPECT_TRUE(SyncOnFinish(RunOptions()));
    EXPECT_EQ(CallableTimeout(7), 7);
    EXPECT_FALSE(RunsInCaller());
  }).join();
}

TEST(StagedCallTest, ARunThatTracesDevicesWaits) {
  const ScopedStagedCall scope{StagedCall()};
  RunOptions options;
  options.set_trace_level(RunOptions::SOFTWARE_TRACE);
  EXPECT_FALSE(SyncOnFinish(options));
  options.set_trace_level(RunOptions::HARDWARE_TRACE);
  EXPECT_TRUE(SyncOnFinish(options));
  options.set_trace_level(RunOptions::FULL_TRACE);
  EXPECT_TRUE(SyncOnFinish(options));
}

// A session that an op of the region runs in the same thread is another run.
TEST(StagedCallTest, OnlyTheNextRunOfTheThreadBelongsToTheStage) {
  const auto buffer = MakeBuffer(1);
  StagedRunThreads threads;
  StagedCall call;
  call.run = BeginRun(buffer.get());
  call.threads = &threads;
  {
    const ScopedStagedCall scope(call);
    EXPECT_EQ(TakeStagedRun(), call.run);
    EXPECT_EQ(TakeStagedRun(), nullptr);
    EXPECT_EQ(TakeStagedRunThreads(), &threads);
    EXPECT_EQ(TakeStagedRunThreads(), nullptr);
  }
  {
    const ScopedStagedCall unused(call);
  }
  EXPECT_EQ(TakeStagedRun(), nullptr);
  EXPECT_EQ(TakeStagedRunThreads(), nullptr);
  threads.Retire();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
