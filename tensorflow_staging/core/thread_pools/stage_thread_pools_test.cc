// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools.h"

#include <sched.h>

#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools_env.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void AddEntry(const std::string& name, int inter_op, int intra_op,
              SessionOptions* options) {
  ConfigFields fields;
  auto* entry = fields.add_session_stage_subgraph_thread_pool();
  entry->set_global_name(name);
  entry->set_inter_op_threads_num(inter_op);
  entry->set_intra_op_threads_num(intra_op);
  ASSERT_TRUE(options->config.MergeFromString(fields.SerializeAsString()));
}

void PinEntry(const std::vector<int>& cores, SessionOptions* options) {
  ConfigFields fields;
  ASSERT_EQ(DecodeConfigFields(options->config, &fields), OkStatus());
  auto* entry = fields.mutable_session_stage_subgraph_thread_pool(0);
  for (const int core : cores) entry->add_cpu_affinity(core);
  options->config.Clear();
  ASSERT_TRUE(options->config.MergeFromString(fields.SerializeAsString()));
}

RunOptions AskFor(int id) {
  RunFields fields;
  fields.set_use_stage_subgraph_thread_pool(true);
  fields.set_stage_subgraph_thread_pool_id(id);
  RunOptions run_options;
  EXPECT_TRUE(run_options.MergeFromString(fields.SerializeAsString()));
  return run_options;
}

// The parts of a session that stage thread pools use: its options and the
// resources of its client device.
class FakeSession {
 public:
  Status Add() { return AddStageThreadPools(options, &resources_); }

  const StageThreadPools* Find(int id) {
    const StageThreadPools* pools = nullptr;
    EXPECT_EQ(FindStageThreadPools(AskFor(id), &resources_, &pools),
              OkStatus());
    return pools;
  }

  Status FindError(const RunOptions& run_options) {
    const StageThreadPools* pools = nullptr;
    const Status status =
        FindStageThreadPools(run_options, &resources_, &pools);
    EXPECT_EQ(pools, nullptr);
    return status;
  }

  SessionOptions options;

 private:
  ResourceMgr resources_;
};

std::string NameOfAThread(thread::ThreadPoolInterface* pool) {
  std::string name;
  Notification done;
  pool->Schedule([&] {
    Env::Default()->GetCurrentThreadName(&name);
    done.Notify();
  });
  done.WaitForNotification();
  return name;
}

Cores CoresOfAThread(thread::ThreadPoolInterface* pool) {
  cpu_set_t set;
  Notification done;
  pool->Schedule([&] {
    EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    done.Notify();
  });
  done.WaitForNotification();
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

// During its lifetime, counts the warnings that mention a stage thread pool.
class WarningCounter : public TFLogSink {
 public:
  WarningCounter() { TFAddLogSink(this); }
  ~WarningCounter() override { TFRemoveLogSink(this); }

  void Send(const TFLogEntry& entry) override {
    if (entry.log_severity() == absl::LogSeverity::kWarning &&
        entry.ToString().find("stage thread pool") != std::string::npos) {
      ++count_;
    }
  }

  int count() const { return count_; }

 private:
  int count_ = 0;
};

TEST(StageThreadPoolsTest, RunWithoutTheOptionUsesNone) {
  FakeSession session;
  AddEntry("", 1, 1, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  EXPECT_EQ(session.FindError(RunOptions()), OkStatus());
}

TEST(StageThreadPoolsTest, EachEntryIsAPairOfItsSizes) {
  FakeSession session;
  AddEntry("", 1, 2, &session.options);
  AddEntry("", 3, 4, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());

  const auto& first = session.Find(0)->options();
  EXPECT_EQ(first.inter_op_threadpool->NumThreads(), 1);
  EXPECT_EQ(first.intra_op_threadpool->NumThreads(), 2);
  const auto& second = session.Find(1)->options();
  EXPECT_EQ(second.inter_op_threadpool->NumThreads(), 3);
  EXPECT_EQ(second.intra_op_threadpool->NumThreads(), 4);
}

TEST(StageThreadPoolsTest, ZeroMeansWhatTheSessionUses) {
  FakeSession session;
  session.options.config.set_inter_op_parallelism_threads(3);
  session.options.config.set_intra_op_parallelism_threads(5);
  AddEntry("", 0, 0, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());

  const auto& options = session.Find(0)->options();
  EXPECT_EQ(options.inter_op_threadpool->NumThreads(), 3);
  EXPECT_EQ(options.intra_op_threadpool->NumThreads(), 5);
}

TEST(StageThreadPoolsTest, ZeroMeansTheMachinesProcessorsByDefault) {
  FakeSession session;
  AddEntry("", 1, 0, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  EXPECT_EQ(session.Find(0)->options().intra_op_threadpool->NumThreads(),
            port::MaxParallelism());
}

TEST(StageThreadPoolsTest, ThreadsCarryTheGlobalName) {
  FakeSession session;
  AddEntry("readers", 1, 1, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  const auto& options = session.Find(0)->options();
  EXPECT_THAT(NameOfAThread(options.inter_op_threadpool),
              HasSubstr("readers_inter_op"));
  EXPECT_THAT(NameOfAThread(options.intra_op_threadpool),
              HasSubstr("readers_intra_op"));
}

TEST(StageThreadPoolsTest, SameNameAndSizesAreShared) {
  FakeSession first;
  FakeSession second;
  AddEntry("shared", 1, 2, &first.options);
  AddEntry("shared", 1, 2, &second.options);
  WarningCounter warnings;
  ASSERT_EQ(first.Add(), OkStatus());
  ASSERT_EQ(second.Add(), OkStatus());
  EXPECT_EQ(first.Find(0), second.Find(0));
  EXPECT_EQ(warnings.count(), 0);
}

TEST(StageThreadPoolsTest, SessionsThatAreCreatedAtTheSameTimeShare) {
  FakeSession sessions[8];
  std::vector<std::thread> threads;
  for (FakeSession& session : sessions) {
    AddEntry("at_once", 1, 2, &session.options);
    threads.emplace_back(
        [&session]() { EXPECT_EQ(session.Add(), OkStatus()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (FakeSession& session : sessions) {
    EXPECT_EQ(session.Find(0), sessions[0].Find(0));
  }
}

TEST(StageThreadPoolsTest, SameNameWithOtherSizesIsItsOwnAndWarnsOnce) {
  FakeSession first;
  FakeSession second;
  FakeSession third;
  AddEntry("resized", 1, 2, &first.options);
  AddEntry("resized", 1, 3, &second.options);
  AddEntry("resized", 1, 3, &third.options);
  WarningCounter warnings;
  ASSERT_EQ(first.Add(), OkStatus());
  ASSERT_EQ(second.Add(), OkStatus());
  ASSERT_EQ(third.Add(), OkStatus());
  EXPECT_NE(first.Find(0), second.Find(0));
  EXPECT_EQ(second.Find(0), third.Find(0));
  EXPECT_EQ(warnings.count(), 1);
}

TEST(StageThreadPoolsTest, ThreadsOfAPinnedPoolRunOnItsCores) {
  const int core = *AvailableCores().rbegin();
  FakeSession session;
  AddEntry("pinned", 1, 2, &session.options);
  PinEntry({core}, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  const auto& options = session.Find(0)->options();
  EXPECT_EQ(CoresOfAThread(options.inter_op_threadpool), Cores({core}));
  EXPECT_EQ(CoresOfAThread(options.intra_op_threadpool), Cores({core}));
}

TEST(StageThreadPoolsTest, SameNameOnOtherCoresIsItsOwnAndWarns) {
  const int core = *AvailableCores().begin();
  FakeSession free;
  FakeSession first;
  FakeSession second;
  AddEntry("moved", 1, 1, &free.options);
  AddEntry("moved", 1, 1, &first.options);
  PinEntry({core}, &first.options);
  AddEntry("moved", 1, 1, &second.options);
  // A repeated core does not change the set of cores.
  PinEntry({core, core}, &second.options);
  WarningCounter warnings;
  ASSERT_EQ(free.Add(), OkStatus());
  ASSERT_EQ(first.Add(), OkStatus());
  ASSERT_EQ(second.Add(), OkStatus());
  EXPECT_NE(free.Find(0), first.Find(0));
  EXPECT_EQ(first.Find(0), second.Find(0));
  EXPECT_EQ(warnings.count(), 1);
}

TEST(StageThreadPoolsTest, CoresThatTheProcessMayNotUseAreRefused) {
  for (const int core : {-1, 1 << 20}) {
    FakeSession session;
    AddEntry("", 1, 1, &session.options);
    PinEntry({*AvailableCores().begin(), core}, &session.options);
    const Status status = session.Add();
    EXPECT_TRUE(errors::IsInvalidArgument(status));
    EXPECT_THAT(
        std::string(status.message()),
        StartsWith("ConfigProto.session_stage_subgraph_thread_pool[0]."
                   "cpu_affinity has " +
                   std::to_string(core) + "; this process may use the cores " +
                   absl::StrJoin(AvailableCores(), ", ")));
  }
}

TEST(StageThreadPoolsTest, SharedPoolsEndWithTheirLastSession) {
  WarningCounter warnings;
  {
    FakeSession session;
    AddEntry("ended", 1, 1, &session.options);
    ASSERT_EQ(session.Add(), OkStatus());
  }
  FakeSession session;
  AddEntry("ended", 2, 2, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  EXPECT_EQ(warnings.count(), 0);
}

TEST(StageThreadPoolsTest, EndedSharedPoolsAreForgotten) {
  const int before = CountSharedStageThreadPools();
  for (int i = 0; i < 5; ++i) {
    FakeSession first;
    FakeSession second;
    AddEntry("name_" + std::to_string(i), 1, 1, &first.options);
    AddEntry("name_" + std::to_string(i), 1, 1, &second.options);
    ASSERT_EQ(first.Add(), OkStatus());
    ASSERT_EQ(second.Add(), OkStatus());
    EXPECT_EQ(CountSharedStageThreadPools(), before + 1);
  }
  EXPECT_EQ(CountSharedStageThreadPools(), before);
}

TEST(StageThreadPoolsTest, UnnamedPoolsAreNeverShared) {
  FakeSession first;
  FakeSession second;
  AddEntry("", 1, 1, &first.options);
  AddEntry("", 1, 1, &second.options);
  ASSERT_EQ(first.Add(), OkStatus());
  ASSERT_EQ(second.Add(), OkStatus());
  EXPECT_NE(first.Find(0), second.Find(0));
}

TEST(StageThreadPoolsTest, SizesThatNoPoolCanHaveAreRefused) {
  for (const int size : {-1, (1 << 14) - 1, 100000000}) {
    FakeSession inter_op;
    AddEntry("", 1, 1, &inter_op.options);
    AddEntry("", size, 1, &inter_op.options);
    EXPECT_EQ(inter_op.Add(),
              errors::InvalidArgument(
                  "ConfigProto.session_stage_subgraph_thread_pool[1]."
                  "inter_op_threads_num must be from 1 to 16382, or 0, which "
                  "means the number that the session itself uses; got ",
                  size, "."));

    FakeSession intra_op;
    AddEntry("", 1, size, &intra_op.options);
    EXPECT_TRUE(errors::IsInvalidArgument(intra_op.Add()));
  }
  FakeSession of_session;
  of_session.options.config.set_inter_op_parallelism_threads(100000000);
  AddEntry("", 0, 1, &of_session.options);
  EXPECT_TRUE(errors::IsInvalidArgument(of_session.Add()));
}

TEST(StageThreadPoolsTest, AllPoolsOfTheProcessHaveALimitTogether) {
  FakeSession first;
  AddEntry("", 1, 1, &first.options);
  ASSERT_EQ(first.Add(), OkStatus());
  FakeSession second;
  AddEntry("", 1, 1, &second.options);
  AddEntry("", (1 << 14) - 2, (1 << 14) - 2, &second.options);
  EXPECT_EQ(second.Add(),
            errors::ResourceExhausted(
                "A stage thread pool with 32764 threads cannot be created: "
                "those of this process have 4, and may have 32764 together."));
  // The pools of a session that could not be created have ended.
  FakeSession third;
  AddEntry("", (1 << 14) - 2, (1 << 14) - 2, &third.options);
  EXPECT_THAT(std::string(third.Add().message()),
              HasSubstr("those of this process have 2,"));
}

TEST(StageThreadPoolsTest, OnePoolIsCreatedByItsIndex) {
  SessionOptions options;
  AddEntry("", 1, 2, &options);
  AddEntry("indexed", 3, 4, &options);
  std::shared_ptr<StageThreadPools> pools;
  ASSERT_EQ(CreateStageThreadPools(options, 1, &pools), OkStatus());
  EXPECT_EQ(pools->options().inter_op_threadpool->NumThreads(), 3);
  std::shared_ptr<StageThreadPools> same;
  ASSERT_EQ(CreateStageThreadPools(options, 1, &same), OkStatus());
  EXPECT_EQ(pools, same);
  for (const int id : {-1, 2}) {
    std::shared_ptr<StageThreadPools> none;
    EXPECT_EQ(CreateStageThreadPools(options, id, &none),
              NoSuchStageThreadPools(id, 2));
    EXPECT_EQ(none, nullptr);
  }
}

TEST(StageThreadPoolsTest, SizesCanBeCheckedWithoutThreads) {
  SessionOptions options;
  AddEntry("", 0, (1 << 14) - 2, &options);
  EXPECT_EQ(CheckStageThreadPoolSizes(options.config), OkStatus());
  AddEntry("", 1 << 14, 1, &options);
  EXPECT_TRUE(
      errors::IsInvalidArgument(CheckStageThreadPoolSizes(options.config)));
}

TEST(StageThreadPoolsTest, SessionWithoutPoolsSaysSo) {
  FakeSession session;
  ASSERT_EQ(session.Add(), OkStatus());
  const Status status = session.FindError(AskFor(0));
  EXPECT_TRUE(errors::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("The run asks for stage thread pool 0, but the "
                         "session has 0 of them. Add an entry to "
                         "ConfigProto.session_stage_subgraph_thread_pool"));
}

TEST(StageThreadPoolsTest, IdOutOfRangeSaysWhich) {
  FakeSession session;
  AddEntry("", 1, 1, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());
  for (const int id : {1, -1}) {
    const Status status = session.FindError(AskFor(id));
    EXPECT_TRUE(errors::IsInvalidArgument(status));
    EXPECT_THAT(
        std::string(status.message()),
        StartsWith("The run asks for stage thread pool " + std::to_string(id) +
                   ", but the session has 1 of them."));
  }
}

TEST(StageThreadPoolsTest, RunThatAlsoAsksForOtherThreadsIsRefused) {
  FakeSession session;
  AddEntry("", 1, 1, &session.options);
  ASSERT_EQ(session.Add(), OkStatus());

  RunOptions session_pool = AskFor(0);
  session_pool.set_inter_op_thread_pool(-1);
  EXPECT_THAT(std::string(session.FindError(session_pool).message()),
              HasSubstr("RunOptions.inter_op_thread_pool each choose"));

  RunOptions run_handler = AskFor(0);
  run_handler.mutable_experimental()->set_use_run_handler_pool(true);
  EXPECT_THAT(
      std::string(session.FindError(run_handler).message()),
      HasSubstr("RunOptions.experimental.use_run_handler_pool each choose"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
