// SPDX-License-Identifier: Apache-2.0
//
// Tests that a session of a server can be closed while a run begins in its
// caller's thread. The thread then cancels the run itself.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/testing/local_server.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGateLabel[] = "StagingTestGate";

// What a run does before it puts its record.
std::function<void()>& Gate() {
  static auto* const gate = new std::function<void()>([] {});
  return *gate;
}

// An Identity, because the ops of a run that stays in its caller's thread are
// listed (region_ops.h).
class GateOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    Gate()();
    ctx->set_output(0, ctx->input(0));
  }
};

REGISTER_KERNEL_BUILDER(Name("Identity").Device(DEVICE_CPU).Label(kGateLabel),
                        GateOp);

// A session of a server with a stage `full`, whose buffer has room for one
// record, and a stage `empty`.
class CallerSessionCloseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphDef graph;
    StageTestGraph::Add(StageTestGraph::Const("constant", Tensor(int64_t{7})),
                        &graph);
    StageTestGraph::Add(NodeDefBuilder("record", "Identity")
                            .Input("constant", 0, DT_INT64)
                            .Attr("_kernel", kGateLabel),
                        &graph);
    full_.name = "full";
    full_.AddTo(&graph, "record");
    empty_.name = "empty";
    empty_.AddTo(&graph, "record");
    SessionOptions options;
    options.target = LocalServerTarget();
    // Keeps the gate, which would be folded into the constant.
    GraphOptions* const graph_options = options.config.mutable_graph_options();
    graph_options->mutable_optimizer_options()->set_opt_level(
        OptimizerOptions::L0);
    graph_options->mutable_rewrite_options()->set_disable_meta_optimizer(true);
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
    for (const StageTestGraph& stage : {full_, empty_}) {
      TF_CHECK_OK(
          session_->Run({}, {}, {stage.Node("TensorBufferResume")}, nullptr));
    }
    CallableOptions put;
    put.add_target(full_.Node("TensorBufferPut"));
    TF_CHECK_OK(session_->MakeCallable(put, &put_));
  }

  Status Put() {
    std::vector<Tensor> nothing;
    return session_->RunCallable(put_, {}, &nothing, nullptr);
  }

  Status Take(const StageTestGraph& stage) {
    std::vector<Tensor> record;
    return session_->Run({}, {stage.Node("TensorBufferTake:0")}, {}, &record);
  }

  bool ATakeWaits(const StageTestGraph& stage) {
    std::vector<Tensor> fetched;
    TF_CHECK_OK(
        session_->Run({}, {stage.Node("TensorBufferStats:0")}, {}, &fetched));
    BufferStats stats;
    EXPECT_TRUE(
        stats.ParseFromString(std::string(fetched[0].scalar<tstring>()())));
    return stats.waiting_takes() > 0;
  }

  std::unique_ptr<Thread> InThread(std::function<void()> work) {
    return std::unique_ptr<Thread>(
        Env::Default()->StartThread({}, "caller_session_close", work));
  }

  StageTestGraph full_;
  StageTestGraph empty_;
  std::unique_ptr<Session> session_;
  Session::CallableHandle put_;
};

TEST_F(CallerSessionCloseTest, ARunThatBeginsMeanwhileIsCancelled) {
  constexpr int64_t kTenYearsMillis = int64_t{10} * 365 * 24 * 3600 * 1000;
  StagedCall call;
  call.timeout_millis = kTenYearsMillis;
  call.runs_in_caller = true;
  const ScopedStagedCall in_caller(call);
  bool has_gate = false;
  Gate() = [&]() { has_gate = true; };
  ASSERT_EQ(Put(), OkStatus());
  ASSERT_TRUE(has_gate);

  // 1. Another run of the session waits. It ends when Close cancels all runs.
  Status taken;
  Notification cancels;
  const auto taker = InThread([&]() {
    taken = Take(empty_);
    cancels.Notify();
  });
  while (!ATakeWaits(empty_)) Env::Default()->SleepForMicroseconds(1000);

  // 2. Close comes while a run begins. The run goes on, and waits for room,
  //    after Close has cancelled what it knows.
  std::unique_ptr<Thread> closer;
  Status closed;
  Gate() = [&]() {
    closer = InThread([&]() { closed = session_->Close(); });
    cancels.WaitForNotification();
  };
  EXPECT_TRUE(errors::IsCancelled(Put()));
  Gate() = [] {};

  closer.reset();
  EXPECT_EQ(closed, OkStatus());
  EXPECT_TRUE(errors::IsCancelled(taken)) << taken;
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
