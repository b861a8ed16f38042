// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/staged_run_threads.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

// What a session's run executes in one of its executors, as DirectSession
// describes it.
struct Library {
  const FunctionLibraryDefinition* GetFunctionLibraryDefinition() const {
    return &functions;
  }
  FunctionLibraryDefinition functions{OpRegistry::Global(),
                                      FunctionDefLibrary()};
};
struct Partition {
  const Graph* graph;
  const Library* flib;
};

StagedCall OnThreads(StagedRunThreads* threads) {
  StagedCall call;
  call.threads = threads;
  return call;
}

class StagedRunThreadsTest : public ::testing::Test {
 protected:
  using Partitions = std::vector<Partition>;

  StagedRunThreadsTest() {
    constant_.Const("op", 1);
    clock_.Lone("op", "Timestamp");
    python_.Lone("op", "PyFunc");
    threads_.AddProducer();
  }
  ~StagedRunThreadsTest() override { threads_.Retire(); }

  // Returns the runner of a run of the session that this thread begins.
  Executor::Args::Runner Run(const Partitions& partitions) {
    return StagedRunThreads::RunnerOfThisRun(&pool_, partitions);
  }

  static int64_t ThisThread() { return Env::Default()->GetCurrentThreadId(); }

  static void RunInOtherThread(std::function<void()> run) {
    const std::unique_ptr<Thread> other(
        Env::Default()->StartThread({}, "other", std::move(run)));
  }

  int64_t ThreadOfPool() {
    int64_t thread = 0;
    Notification done;
    pool_.Schedule([&]() {
      thread = ThisThread();
      done.Notify();
    });
    done.WaitForNotification();
    return thread;
  }

  const Library library_;
  TestGraph constant_;
  TestGraph clock_;
  TestGraph python_;
  const Partitions with_python_ = {{constant_.get(), &library_},
                                   {python_.get(), &library_}};
  const Partitions without_python_ = {{constant_.get(), &library_},
                                      {clock_.get(), &library_}};
  const Partitions only_moves_ = {{constant_.get(), &library_}};
  thread::ThreadPool pool_{Env::Default(), "pool", 1};
  StagedRunThreads threads_;
};

TEST_F(StagedRunThreadsTest, OnlyTheNextRunOfTheThreadIsStaged) {
  EXPECT_EQ(Run(with_python_), nullptr);
  {
    const ScopedStagedCall scope(OnThreads(&threads_));
    EXPECT_NE(Run(with_python_), nullptr);
    EXPECT_EQ(Run(with_python_), nullptr);
  }
  {
    const ScopedStagedCall scope(OnThreads(&threads_));
  }
  EXPECT_EQ(Run(with_python_), nullptr);
  {
    const ScopedStagedCall scope(OnThreads(nullptr));
    EXPECT_EQ(Run(with_python_), nullptr);
  }
}

TEST_F(StagedRunThreadsTest, ARunInItsCallersThreadNeedsNoOtherAndIsOneRun) {
  const ScopedStagedCall scope(OnThreads(&threads_));
  EXPECT_EQ(StagedRunThreads::RunnerOfThisRun(nullptr, with_python_), nullptr);
  EXPECT_EQ(Run(with_python_), nullptr);
}

TEST_F(StagedRunThreadsTest, ARunWithoutPythonStaysOnTheSessionsThreads) {
  for (int turn = 0; turn < 2; ++turn) {
    const ScopedStagedCall scope(OnThreads(&threads_));
    EXPECT_EQ(Run(without_python_), nullptr);
  }
}

TEST_F(StagedRunThreadsTest, ARunThatOnlyMovesRecordsBeginsInItsCallersThread) {
  StagedCall call = OnThreads(&threads_);
  call.runs_in_caller = true;
  const ScopedStagedCall scope(std::move(call));
  const Executor::Args::Runner runner = Run(only_moves_);
  int64_t beginner = 0, other = 0;
  runner([&]() { beginner = ThisThread(); });
  EXPECT_EQ(beginner, ThisThread());
  // What goes on later does so on the session's threads.
  Notification done;
  RunInOtherThread([&]() {
    runner([&]() {
      other = ThisThread();
      done.Notify();
    });
  });
  done.WaitForNotification();
  EXPECT_NE(other, ThisThread());
  EXPECT_EQ(other, ThreadOfPool());
}

TEST_F(StagedRunThreadsTest, ARunOfAnUnknownGraphMayCallPython) {
  const Partitions unknown = {{nullptr, &library_}};
  const ScopedStagedCall scope(OnThreads(&threads_));
  EXPECT_NE(Run(unknown), nullptr);
}

TEST_F(StagedRunThreadsTest, ARunThatWaitsLeavesThePoolToTheStep) {
  const ScopedStagedCall scope(OnThreads(&threads_));
  const Executor::Args::Runner runner = Run(with_python_);
  Notification step, region;
  runner([&]() {
    step.WaitForNotification();
    region.Notify();
  });
  pool_.Schedule([&]() { step.Notify(); });
  region.WaitForNotification();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
