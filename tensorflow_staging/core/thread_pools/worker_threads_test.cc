// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/worker_threads.h"

#include "gtest/gtest.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

class WorkerThreadsTest : public ::testing::Test {
 protected:
  ~WorkerThreadsTest() override { ForgetWorkerGraph(this); }

  Executor::Args::Runner Note() {
    NoteWorkerGraph(this, *graph_.get());
    return WorkerRunner(this, pool_);
  }

  TestGraph graph_;
  thread::ThreadPool pool_{Env::Default(), "compute", 1};
};

TEST_F(WorkerThreadsTest, AGraphWithoutAPutIsAStep) {
  EXPECT_EQ(WorkerRunner(this, pool_), nullptr);
  graph_.Lone("python", "PyFunc");
  EXPECT_EQ(Note(), nullptr);
}

TEST_F(WorkerThreadsTest, AStageWithoutPythonStaysOnThePool) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  EXPECT_EQ(Note(), nullptr);
}

TEST_F(WorkerThreadsTest, AStageWithPythonLeavesThePoolToTheSteps) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  const Executor::Args::Runner runner = Note();
  ASSERT_NE(runner, nullptr);
  Notification step, region;
  runner([&]() {
    step.WaitForNotification();
    region.Notify();
  });
  pool_.Schedule([&]() { step.Notify(); });
  region.WaitForNotification();
}

// The dataset's functions are only in the graph that initializes the iterator.
TEST_F(WorkerThreadsTest, AnIteratorMayHaveADatasetWithPython) {
  graph_.Put("put", "stage", {graph_.Source("next")});
  EXPECT_EQ(Note(), nullptr);
  TestGraph initializer;
  initializer.InitializeWithRange("init", initializer.Iterator("iterator"), 0,
                                  1);
  NoteWorkerGraph(&initializer, *initializer.get());
  EXPECT_EQ(WorkerRunner(this, pool_), nullptr);
  initializer.Lone("python", "PyFunc");
  NoteWorkerGraph(&initializer, *initializer.get());
  EXPECT_NE(WorkerRunner(this, pool_), nullptr);
}

TEST_F(WorkerThreadsTest, ARunnerOutlivesItsGraph) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  const Executor::Args::Runner runner = Note();
  ForgetWorkerGraph(this);
  EXPECT_EQ(WorkerRunner(this, pool_), nullptr);
  Notification done;
  runner([&]() { done.Notify(); });
  done.WaitForNotification();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
