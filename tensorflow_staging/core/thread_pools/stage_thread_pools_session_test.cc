// SPDX-License-Identifier: Apache-2.0
//
// Tests that a session runs on its stage thread pools, which the patch of
// direct_session.cc connects to it.

#define EIGEN_USE_THREADS

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runtime/partial_run_pool.h"
#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

REGISTER_OP("ThreadsOfThisStep")
    .Output("inter_op: string")
    .Output("intra_op_threads: int32")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

// Reports the name of its inter-op thread and the number of intra-op threads.
class ThreadsOfThisStepOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Tensor* inter_op;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &inter_op));
    std::string name;
    Env::Default()->GetCurrentThreadName(&name);
    inter_op->scalar<tstring>()() = name;

    Tensor* intra_op_threads;
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &intra_op_threads));
    intra_op_threads->scalar<int32>()() =
        context->device()->eigen_cpu_device()->numThreads();
  }

  // The executor runs cheap ops on the thread that made them ready.
  bool IsExpensive() override { return true; }
};

REGISTER_KERNEL_BUILDER(Name("ThreadsOfThisStep").Device(DEVICE_CPU),
                        ThreadsOfThisStepOp);

SessionOptions OptionsWithPools(const std::vector<int>& intra_op_threads) {
  ConfigFields fields;
  for (size_t i = 0; i < intra_op_threads.size(); ++i) {
    auto* entry = fields.add_session_stage_subgraph_thread_pool();
    entry->set_inter_op_threads_num(1);
    entry->set_intra_op_threads_num(intra_op_threads[i]);
    entry->set_global_name("pool" + std::to_string(i));
  }
  SessionOptions options;
  EXPECT_TRUE(options.config.MergeFromString(fields.SerializeAsString()));
  return options;
}

std::unique_ptr<Session> MakeSession(const SessionOptions& options) {
  Session* session = nullptr;
  EXPECT_EQ(NewSession(options, &session), OkStatus());
  GraphDef graph;
  EXPECT_EQ(
      NodeDefBuilder("threads", "ThreadsOfThisStep").Finalize(graph.add_node()),
      OkStatus());
  EXPECT_EQ(session->Create(graph), OkStatus());
  return std::unique_ptr<Session>(session);
}

RunOptions AskFor(int id) {
  RunFields fields;
  fields.set_use_stage_subgraph_thread_pool(true);
  fields.set_stage_subgraph_thread_pool_id(id);
  RunOptions run_options;
  EXPECT_TRUE(run_options.MergeFromString(fields.SerializeAsString()));
  return run_options;
}

struct Threads {
  std::string inter_op;
  int intra_op_threads = 0;
};

Threads FromOutputs(const std::vector<Tensor>& outputs) {
  return {outputs[0].scalar<tstring>()(), outputs[1].scalar<int32>()()};
}

Status RunOnce(Session* session, const RunOptions& run_options,
               Threads* threads) {
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session->Run(run_options, {}, {"threads:0", "threads:1"},
                                  {}, &outputs,
                                  /*run_metadata=*/nullptr));
  *threads = FromOutputs(outputs);
  return OkStatus();
}

Status RunAsCallable(Session* session, const RunOptions& run_options,
                     Threads* threads) {
  CallableOptions options;
  *options.mutable_run_options() = run_options;
  options.add_fetch("threads:0");
  options.add_fetch("threads:1");
  Session::CallableHandle callable;
  TF_RETURN_IF_ERROR(session->MakeCallable(options, &callable));
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session->RunCallable(callable, {}, &outputs,
                                          /*run_metadata=*/nullptr));
  *threads = FromOutputs(outputs);
  return session->ReleaseCallable(callable);
}

Status RunPartially(Session* session, const RunOptions& run_options,
                    Threads* threads) {
  std::string handle;
  {
    ScopedPartialRunOptions scope(run_options);
    TF_RETURN_IF_ERROR(
        session->PRunSetup({}, {"threads:0", "threads:1"}, {}, &handle));
  }
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(
      session->PRun(handle, {}, {"threads:0", "threads:1"}, &outputs));
  *threads = FromOutputs(outputs);
  return OkStatus();
}

TEST(StageThreadPoolsSessionTest, RunTakesBothPoolsOfItsId) {
  const auto session = MakeSession(OptionsWithPools({3, 5}));
  Threads threads;
  ASSERT_EQ(RunOnce(session.get(), AskFor(0), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, HasSubstr("pool0_inter_op"));
  EXPECT_EQ(threads.intra_op_threads, 3);
  ASSERT_EQ(RunOnce(session.get(), AskFor(1), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, HasSubstr("pool1_inter_op"));
  EXPECT_EQ(threads.intra_op_threads, 5);
}

TEST(StageThreadPoolsSessionTest, CallableTakesBothPoolsOfItsId) {
  const auto session = MakeSession(OptionsWithPools({3, 5}));
  Threads threads;
  ASSERT_EQ(RunAsCallable(session.get(), AskFor(1), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, HasSubstr("pool1_inter_op"));
  EXPECT_EQ(threads.intra_op_threads, 5);
}

TEST(StageThreadPoolsSessionTest, PartialRunTakesBothPoolsOfItsId) {
  const auto session = MakeSession(OptionsWithPools({3, 5}));
  Threads threads;
  ASSERT_EQ(RunPartially(session.get(), AskFor(1), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, HasSubstr("pool1_inter_op"));
  EXPECT_EQ(threads.intra_op_threads, 5);
}

TEST(StageThreadPoolsSessionTest, OtherRunsStayOnTheSessionsThreads) {
  const auto session = MakeSession(OptionsWithPools({3}));
  Threads threads;
  // The options of one partial run do not apply to the next.
  ASSERT_EQ(RunPartially(session.get(), AskFor(0), &threads), OkStatus());
  ASSERT_EQ(RunPartially(session.get(), RunOptions(), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, Not(HasSubstr("pool0")));
  ASSERT_EQ(RunOnce(session.get(), RunOptions(), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, Not(HasSubstr("pool0")));
  ASSERT_EQ(RunAsCallable(session.get(), RunOptions(), &threads), OkStatus());
  EXPECT_THAT(threads.inter_op, Not(HasSubstr("pool0")));
}

TEST(StageThreadPoolsSessionTest, PoolsWinOverTheCallersThread) {
  SessionOptions options = OptionsWithPools({3});
  options.config.set_inter_op_parallelism_threads(-1);
  const auto session = MakeSession(options);
  for (const auto& run : {RunOnce, RunAsCallable, RunPartially}) {
    Threads threads;
    ASSERT_EQ(run(session.get(), AskFor(0), &threads), OkStatus());
    EXPECT_THAT(threads.inter_op, HasSubstr("pool0_inter_op"));
    EXPECT_EQ(threads.intra_op_threads, 3);
  }
}

TEST(StageThreadPoolsSessionTest, MissingPoolIsAnErrorForEachWayToRun) {
  const auto session = MakeSession(OptionsWithPools({3}));
  Threads threads;
  for (const Status& status :
       {RunOnce(session.get(), AskFor(1), &threads),
        RunAsCallable(session.get(), AskFor(1), &threads),
        RunPartially(session.get(), AskFor(1), &threads)}) {
    EXPECT_TRUE(errors::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("asks for stage thread pool 1, but the session has "
                          "1 of them"));
  }
}

TEST(StageThreadPoolsSessionTest, PoolsSurviveAReset) {
  const auto session = MakeSession(OptionsWithPools({3}));
  const DeviceMgr* devices;
  ASSERT_EQ(session->LocalDeviceManager(&devices), OkStatus());
  devices->ClearContainers({});
  Threads threads;
  EXPECT_EQ(RunOnce(session.get(), AskFor(0), &threads), OkStatus());
}

TEST(StageThreadPoolsSessionTest, NegativeSizeFailsWhenTheSessionIsCreated) {
  Session* session = nullptr;
  const Status status = NewSession(OptionsWithPools({-1}), &session);
  EXPECT_TRUE(errors::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("session_stage_subgraph_thread_pool[0]."
                        "intra_op_threads_num must be from 1 to 16382"));
  EXPECT_EQ(session, nullptr);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
