// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/worker_runs.h"

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/framework/stale_run_error.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/runtime/worker_run_pool.h"
#include "tensorflow_staging/core/sources/staged_run.h"
#include "tensorflow_staging/core/testing/test_graph.h"
#include "tensorflow_staging/core/thread_pools/worker_session_pools.h"

namespace tensorflow {
namespace staging {
namespace {

StagedCall InCaller() {
  StagedCall call;
  call.runs_in_caller = true;
  return call;
}

class WorkerRunsTest : public ::testing::Test {
 protected:
  ~WorkerRunsTest() override {
    ForgetWorkerGraph(this);
    AwaitPools(0);
  }

  WorkerRun Note() {
    EXPECT_EQ(
        NoteWorkerGraph(this, "session", config_, *graph_.get(), devices_),
        OkStatus());
    return WorkerRunOf(this, &pool_);
  }

  // Waits until there are only so many pools. A closure that has just run may hold
  // them for a moment longer.
  static void AwaitPools(int count) {
    while (CountSharedStageThreadPools() > count) {
      Env::Default()->SleepForMicroseconds(1000);
    }
  }

  void AddPool(const std::string& name) {
    ConfigFields fields;
    auto* entry = fields.add_session_stage_subgraph_thread_pool();
    entry->set_global_name(name);
    entry->set_inter_op_threads_num(1);
    entry->set_intra_op_threads_num(1);
    ASSERT_TRUE(config_.MergeFromString(fields.SerializeAsString()));
  }

  ConfigProto config_;
  StaticDeviceMgr devices_{DeviceFactory::NewDevice(
      "CPU", SessionOptions(), "/job:worker/replica:0/task:0")};
  TestGraph graph_;
  thread::ThreadPool pool_{Env::Default(), "compute", 1};
};

TEST_F(WorkerRunsTest, AGraphWithoutAPutIsAStep) {
  EXPECT_FALSE(WorkerRunOf(this, &pool_).is_staged);
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

TEST_F(WorkerRunsTest, AStageThatOnlyMovesRecordsIsInItsProducersThread) {
  graph_.Put("put", "stage", {graph_.Source("next")});
  EXPECT_EQ(Note().runner, nullptr);
  const ScopedStagedCall scope(InCaller());
  const Executor::Args::Runner runner = WorkerRunOf(this, &pool_).runner;
  ASSERT_NE(runner, nullptr);
  bool has_run = false;
  std::function<void(const Status&)> done = [](const Status&) {};
  CancellationManager cancellation;
  const ScopedWorkerRun begins(this, {}, &cancellation, &done);
  runner([&]() { has_run = true; });
  EXPECT_TRUE(has_run);
  graph_.Neg("neg", graph_.Const("constant", 1));
  EXPECT_EQ(Note().runner, nullptr);
}

TEST_F(WorkerRunsTest, AStepIsNeverInItsCallersThread) {
  graph_.Identity("step", graph_.Take("stage"));
  const ScopedStagedCall scope(InCaller());
  EXPECT_EQ(Note().runner, nullptr);
}

// The dataset's functions are only in the graph that initializes the iterator.
TEST_F(WorkerRunsTest, AnIteratorMayHaveADatasetWithPython) {
  graph_.Put("put", "stage", {graph_.Source("next")});
  EXPECT_EQ(Note().runner, nullptr);
  TestGraph initializer;
  initializer.InitializeWithRange("init", initializer.Iterator("iterator"), 0,
                                  1);
  ASSERT_EQ(NoteWorkerGraph(&initializer, "session", config_,
                            *initializer.get(), devices_),
            OkStatus());
  EXPECT_EQ(WorkerRunOf(this, &pool_).runner, nullptr);
  initializer.Lone("python", "PyFunc");
  ASSERT_EQ(NoteWorkerGraph(&initializer, "session", config_,
                            *initializer.get(), devices_),
            OkStatus());
  EXPECT_NE(WorkerRunOf(this, &pool_).runner, nullptr);
}

TEST_F(WorkerRunsTest, ARunnerOutlivesItsGraph) {
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  const Executor::Args::Runner runner = Note().runner;
  ForgetWorkerGraph(this);
  EXPECT_FALSE(WorkerRunOf(this, &pool_).is_staged);
  Notification done;
  runner([&]() { done.Notify(); });
  done.WaitForNotification();
}

// A run of a graph with a Put, which the constructor begins.
class WorkerStageTest : public WorkerRunsTest {
 protected:
  WorkerStageTest() {
    graph_.Put("put", "stage", {graph_.Source("next")});
    Note();
    ResourceMgr* const manager = devices_.ListDevices()[0]->resource_manager();
    TensorBuffer::Options options;
    options.name = "stage";
    buffer_.reset(new TensorBuffer(options));
    TF_CHECK_OK(manager->CreateUnowned(manager->default_container(), "stage",
                                       buffer_.get()));
  }

  Status Begin() {
    const ScopedWorkerRun scope(this, {}, &cancellation_, &done_);
    return scope.status();
  }

  // Ends the run that has begun. Returns the status that the master gets.
  Status End(const Status& status) {
    done_(status);
    return reported_;
  }

  core::RefCountPtr<TensorBuffer> buffer_;
  CancellationManager cancellation_;
  Status reported_;
  std::function<void(const Status&)> done_ = [this](const Status& status) {
    reported_ = status;
  };
};

TEST_F(WorkerStageTest, ARunOfAGraphWithAPutIsAStagedRunUntilItIsDone) {
  EXPECT_EQ(StagedRun::Find(&cancellation_), nullptr);
  ASSERT_EQ(Begin(), OkStatus());
  const std::shared_ptr<StagedRun> run = StagedRun::Find(&cancellation_);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->stage(), buffer_.get());
  EXPECT_TRUE(run->is_admitted());
  EXPECT_EQ(End(OkStatus()), OkStatus());
  EXPECT_EQ(StagedRun::Find(&cancellation_), nullptr);
}

TEST_F(WorkerStageTest, AnErrorOfTheRunStays) {
  ASSERT_EQ(Begin(), OkStatus());
  const Status error = errors::OutOfRange("end of sequence");
  EXPECT_EQ(End(error), error);
}

TEST_F(WorkerStageTest, ARunThatHasToBeRepeatedSaysSo) {
  ASSERT_EQ(Begin(), OkStatus());
  buffer_->Discard();
  const Status status = End(errors::OutOfRange("end of sequence"));
  EXPECT_TRUE(IsStaleRunError(status)) << status;
}

TEST_F(WorkerStageTest, ARunOfAStageThatHasEndedWaitsBeforeItReads) {
  buffer_->Close(OkStatus());
  ASSERT_EQ(Begin(), OkStatus());
  const std::shared_ptr<StagedRun> run = StagedRun::Find(&cancellation_);
  ASSERT_NE(run, nullptr);
  EXPECT_FALSE(run->is_admitted());
  Notification admitted;
  run->AwaitAdmission(&cancellation_, [&](const Status& status) {
    EXPECT_EQ(status, OkStatus());
    admitted.Notify();
  });
  EXPECT_FALSE(admitted.HasBeenNotified());
  buffer_->Resume();
  admitted.WaitForNotification();
  EXPECT_EQ(End(OkStatus()), OkStatus());
}

// What a worker's run has: the pools' threads until it is done.
struct Chosen {
  Status status;
  WorkerRun run;
  std::function<void(const Status&)> done = [](const Status&) {};
};

Chosen Choose(const void* item, int id, thread::ThreadPool* pool) {
  RunFields fields;
  fields.set_use_stage_subgraph_thread_pool(true);
  fields.set_stage_subgraph_thread_pool_id(id);
  RunOptions run_options;
  EXPECT_TRUE(run_options.MergeFromString(fields.SerializeAsString()));
  ExecutorOpts options;
  EXPECT_EQ(ForwardStageThreadPool(run_options, &options), OkStatus());
  Chosen chosen;
  CancellationManager cancellation;
  const ScopedWorkerRun scope(item, options, &cancellation, &chosen.done);
  chosen.status = scope.status();
  chosen.run = WorkerRunOf(item, pool);
  return chosen;
}

std::string NameOfAThread(const Executor::Args::Runner& runner) {
  std::string name;
  Notification done;
  runner([&]() {
    Env::Default()->GetCurrentThreadName(&name);
    done.Notify();
  });
  done.WaitForNotification();
  return name;
}

TEST_F(WorkerRunsTest, ARunThatAsksForAPoolHasIt) {
  AddPool("worker_pool");
  graph_.Const("record", 1);
  EXPECT_EQ(Note().runner, nullptr);
  const Chosen chosen = Choose(this, 0, &pool_);
  ASSERT_EQ(chosen.status, OkStatus());
  EXPECT_NE(NameOfAThread(chosen.run.runner).find("worker_pool_inter_op"),
            std::string::npos);
  EXPECT_EQ(chosen.run.intra_op_threadpool->NumThreads(), 1);
  EXPECT_EQ(Choose(this, 0, &pool_).run.intra_op_threadpool,
            chosen.run.intra_op_threadpool);
  EXPECT_EQ(WorkerRunOf(this, &pool_).runner, nullptr);
}

TEST_F(WorkerRunsTest, APoolOfAStageThatCallsPythonTakesPrecedence) {
  AddPool("python_pool");
  graph_.Put("put", "stage", {graph_.Const("record", 1)});
  graph_.Lone("python", "PyFunc");
  EXPECT_NE(Note().runner, nullptr);
  const Chosen chosen = Choose(this, 0, &pool_);
  EXPECT_TRUE(chosen.run.is_staged);
  EXPECT_NE(NameOfAThread(chosen.run.runner).find("python_pool_inter_op"),
            std::string::npos);
}

TEST_F(WorkerRunsTest, APoolThatTheSessionLacksIsAnError) {
  graph_.Const("record", 1);
  Note();
  EXPECT_EQ(Choose(this, 0, &pool_).status, NoSuchStageThreadPools(0, 0));
  AddPool("only_one");
  Note();
  EXPECT_EQ(Choose(this, 1, &pool_).status, NoSuchStageThreadPools(1, 1));
  EXPECT_EQ(Choose(this, -1, &pool_).status, NoSuchStageThreadPools(-1, 1));
}

TEST_F(WorkerRunsTest, AMalformedChoiceIsAnError) {
  graph_.Const("record", 1);
  Note();
  ExecutorOpts options;
  // Field 10001 as a string.
  ASSERT_TRUE(options.MergeFromString("\x8a\xf1\x04\x01x"));
  std::function<void(const Status&)> done = [](const Status&) {};
  CancellationManager cancellation;
  const ScopedWorkerRun scope(this, options, &cancellation, &done);
  EXPECT_TRUE(errors::IsInvalidArgument(scope.status())) << scope.status();
}

TEST_F(WorkerRunsTest, PoolsEndWithTheGraphsOfTheirSessionAndTheLastRun) {
  const int before = CountSharedStageThreadPools();
  AddPool("ends");
  graph_.Const("record", 1);
  Note();
  Executor::Args::Runner runner;
  {
    const Chosen chosen = Choose(this, 0, &pool_);
    runner = chosen.run.runner;
    ForgetWorkerGraph(this);
    EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
    EXPECT_NE(NameOfAThread(runner).find("ends_inter_op"), std::string::npos);
  }
  AwaitPools(before);
  EXPECT_NE(NameOfAThread(runner).find("compute"), std::string::npos);
}

TEST_F(WorkerRunsTest, TheLastOwnerMayBeAThreadOfThePool) {
  const int before = CountSharedStageThreadPools();
  AddPool("last_owner");
  graph_.Const("record", 1);
  Note();
  Notification forgotten;
  {
    const Chosen chosen = Choose(this, 0, &pool_);
    chosen.run.runner([&]() { forgotten.WaitForNotification(); });
    ForgetWorkerGraph(this);
  }
  EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
  forgotten.Notify();
  AwaitPools(before);
}

TEST_F(WorkerRunsTest, APoolEndsWithItsLastRunIfOneWasCancelled) {
  const int before = CountSharedStageThreadPools();
  AddPool("cancelled");
  graph_.Const("record", 1);
  Note();
  {
    const Chosen one = Choose(this, 0, &pool_);
    const Chosen other = Choose(this, 0, &pool_);
    one.done(errors::Cancelled("The client has gone."));
    EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
    EXPECT_NE(NameOfAThread(other.run.runner).find("cancelled_inter_op"),
              std::string::npos);
    other.done(OkStatus());
  }
  AwaitPools(before);
  EXPECT_EQ(Choose(this, 0, &pool_).status, OkStatus());
  EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
}

TEST_F(WorkerRunsTest, AnErrorOfARunLeavesItsPool) {
  const int before = CountSharedStageThreadPools();
  AddPool("failed");
  graph_.Const("record", 1);
  Note();
  Choose(this, 0, &pool_).done(errors::OutOfRange("The data have ended."));
  EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
}

TEST_F(WorkerRunsTest, APoolThatNoRunUsesIsReleasedAndCreatedAgain) {
  const int before = CountSharedStageThreadPools();
  AddPool("unused");
  graph_.Const("record", 1);
  Note();
  {
    const Chosen chosen = Choose(this, 0, &pool_);
    WorkerSessionPools::ReleaseUnused(std::chrono::milliseconds(0));
    EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
  }
  WorkerSessionPools::ReleaseUnused(std::chrono::hours(1));
  EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
  WorkerSessionPools::ReleaseUnused(std::chrono::milliseconds(0));
  EXPECT_EQ(CountSharedStageThreadPools(), before);
  EXPECT_EQ(Choose(this, 0, &pool_).status, OkStatus());
  EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
