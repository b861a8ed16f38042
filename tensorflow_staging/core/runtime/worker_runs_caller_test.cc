// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/runtime/worker_runs.h"

namespace tensorflow {
namespace staging {
namespace {

StagedCall InCaller() {
  StagedCall call;
  call.runs_in_caller = true;
  return call;
}

int64_t ThisThread() { return Env::Default()->GetCurrentThreadId(); }

class RunInCallerTest : public ::testing::Test {
 protected:
  // Returns the thread that runs a closure which this thread passes on.
  int64_t ThreadOfClosure() {
    int64_t thread = 0;
    Notification done;
    runner_([&]() {
      thread = ThisThread();
      done.Notify();
    });
    done.WaitForNotification();
    return thread;
  }

  thread::ThreadPool pool_{Env::Default(), "pool", 1};
  const Executor::Args::Runner runner_ = RunnerInBeginner(&pool_);
};

TEST_F(RunInCallerTest, OnlyAScopeRunsClosuresInItsThread) {
  const ScopedRunBegin begin;
  EXPECT_NE(ThreadOfClosure(), ThisThread());
  {
    const ScopedStagedCall scope(InCaller());
    EXPECT_EQ(ThreadOfClosure(), ThisThread());
  }
  EXPECT_NE(ThreadOfClosure(), ThisThread());
}

TEST_F(RunInCallerTest, ScopesNest) {
  const ScopedStagedCall outer(InCaller());
  {
    const ScopedStagedCall inner(InCaller());
  }
  const ScopedRunBegin outer_begin;
  {
    const ScopedRunBegin inner_begin;
  }
  EXPECT_EQ(ThreadOfClosure(), ThisThread());
}

TEST_F(RunInCallerTest, OnlyTheBeginOfARunIsInTheThread) {
  const ScopedStagedCall scope(InCaller());
  {
    const ScopedRunBegin begin;
  }
  EXPECT_NE(ThreadOfClosure(), ThisThread());
}

TEST_F(RunInCallerTest, WhatAnotherThreadPassesOnRunsOnThePool) {
  const ScopedStagedCall scope(InCaller());
  const ScopedRunBegin begin;
  Notification done;
  const std::unique_ptr<Thread> other(
      Env::Default()->StartThread({}, "other", [&]() {
        EXPECT_NE(ThreadOfClosure(), ThisThread());
        done.Notify();
      }));
  done.WaitForNotification();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
