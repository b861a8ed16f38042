// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/worker_runs.h"

#include "gtest/gtest.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

class WorkerRunsTest : public ::testing::Test {
 protected:
  ~WorkerRunsTest() override { ForgetWorkerGraph(this); }

  WorkerRun Note() {
    NoteWorkerGraph(this, *graph_.get());
    return WorkerRunOf(this, pool_);
  }

  TestGraph graph_;
  thread::ThreadPool pool_{Env::Default(), "compute", 1};
};

TEST_F(WorkerRunsTest, AGraphWithoutAPutIsAStep) {
  EXPECT_FALSE(WorkerRunOf(this, pool_).is_staged);
  graph_.Lone("python", "PyFunc");
  const WorkerRun run = Note();
  EXPECT_FALSE(run.is_staged);
  EXPECT_EQ(run.runner, nullptr);
}

TEST_F(WorkerRunsTest, AStageWithoutPythonStaysOnThePool) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  const WorkerRun run = Note();
  EXPECT_TRUE(run.is_staged);
  EXPECT_EQ(run.runner, nullptr);
}

TEST_F(WorkerRunsTest, AStageWithPythonLeavesThePoolToTheSteps) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  const Executor::Args::Runner runner = Note().runner;
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
TEST_F(WorkerRunsTest, AnIteratorMayHaveADatasetWithPython) {
  graph_.Put("put", "stage", {graph_.Source("next")});
  EXPECT_EQ(Note().runner, nullptr);
  TestGraph initializer;
  initializer.InitializeWithRange("init", initializer.Iterator("iterator"), 0,
                                  1);
  NoteWorkerGraph(&initializer, *initializer.get());
  EXPECT_EQ(WorkerRunOf(this, pool_).runner, nullptr);
  initializer.Lone("python", "PyFunc");
  NoteWorkerGraph(&initializer, *initializer.get());
  EXPECT_NE(WorkerRunOf(this, pool_).runner, nullptr);
}

TEST_F(WorkerRunsTest, ARunnerOutlivesItsGraph) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  const Executor::Args::Runner runner = Note().runner;
  ForgetWorkerGraph(this);
  EXPECT_FALSE(WorkerRunOf(this, pool_).is_staged);
  Notification done;
  runner([&]() { done.Notify(); });
  done.WaitForNotification();
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
