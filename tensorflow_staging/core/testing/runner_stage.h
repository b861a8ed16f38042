// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_RUNNER_STAGE_H_
#define TENSORFLOW_STAGING_CORE_TESTING_RUNNER_STAGE_H_

// A session with a stage whose sources are functions of the test. This header
// registers an op: include it in only one file of a program.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {

// Yields the records of a test: the body of the op StagingTestSource.
using TestSource =
    std::function<void(OpKernelContext*, AsyncOpKernel::DoneCallback)>;

// The sources of the current test, by the attribute `source` of the op.
class Sources {
 public:
  static Sources* Get() {
    static auto* const sources = new Sources;
    return sources;
  }

  void Set(const std::string& name, TestSource source) {
    mutex_lock l(mu_);
    sources_[name] = std::move(source);
  }

  TestSource Find(const std::string& name) {
    mutex_lock l(mu_);
    return sources_.at(name);
  }

 private:
  mutex mu_;
  std::map<std::string, TestSource> sources_ TF_GUARDED_BY(mu_);
};

REGISTER_OP("StagingTestSource")
    .Attr("source: string")
    .Output("value: int64")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);

class StagingTestSourceOp : public AsyncOpKernel {
 public:
  explicit StagingTestSourceOp(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("source", &source_));
  }

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    Sources::Get()->Find(source_)(ctx, std::move(done));
  }

 private:
  std::string source_;
};

REGISTER_KERNEL_BUILDER(Name("StagingTestSource").Device(DEVICE_CPU),
                        StagingTestSourceOp);

// Yields the number of the call, counted from 0, or the error that
// outcome(call) returns.
inline TestSource Counting(std::function<Status(int64_t call)> outcome) {
  auto calls = std::make_shared<std::atomic<int64_t>>(0);
  return
      [calls, outcome](OpKernelContext* ctx, AsyncOpKernel::DoneCallback done) {
        const int64_t call = calls->fetch_add(1);
        const Status status = outcome(call);
        if (status.ok()) {
          ctx->set_output(0, Tensor(call));
        } else {
          ctx->SetStatus(status);
        }
        done();
      };
}

// Yields 0, 1 .. count - 1, then the end of the data.
inline TestSource CountingTo(int64_t count) {
  return Counting([count](int64_t call) {
    return call < count ? OkStatus() : errors::OutOfRange("end of sequence");
  });
}

inline TestSource Endless() {
  return Counting([](int64_t) { return OkStatus(); });
}

// Waits until the step is cancelled, then fails with CANCELLED. Notifies
// `began` at the first call, unless it is null.
inline TestSource WaitingForCancellation(Notification* began) {
  return [began](OpKernelContext* ctx, AsyncOpKernel::DoneCallback done) {
    CancellationManager* cancellation = ctx->cancellation_manager();
    auto cancelled = [ctx, done]() {
      ctx->SetStatus(errors::Cancelled("source was cancelled"));
      done();
    };
    const bool registered = cancellation->RegisterCallback(
        cancellation->get_cancellation_token(), cancelled);
    if (began != nullptr && !began->HasBeenNotified()) began->Notify();
    if (!registered) cancelled();
  };
}

constexpr char kSource[] = "source";
constexpr char kOtherSource[] = "other_source";
constexpr char kInitializer[] = "initializer";

// The options of a RunnerSession.
struct StageConfig {
  int64_t capacity = 2;
  int num_threads = 1;
  // Whether the stage has two sources, like one of tf.prefetch_join.
  bool join_other_source = false;
  // Whether the record is dead, so that no Put runs, and the runner checks it.
  bool dead_record = false;
  // Whether each run is fed its record, which an earlier run fetches from
  // kSource.
  bool feed = false;
  std::vector<error::Code> closed = {error::OUT_OF_RANGE};
  std::vector<error::Code> ignored;
  RunOptions run_options;
};

// A session with one stage that reads the current sources.
class RunnerSession {
 public:
  explicit RunnerSession(const StageConfig& config = StageConfig()) {
    StageTestGraph stage;
    stage.capacity = config.capacity;
    for (const char* node : {kSource, kOtherSource, kInitializer}) {
      StageTestGraph::Add(
          NodeDefBuilder(node, "StagingTestSource").Attr("source", node),
          &graph_);
    }
    StageTestGraph::Add(
        NodeDefBuilder("fed", "Placeholder").Attr("dtype", DT_INT64), &graph_);
    if (config.dead_record) {
      StageTestGraph::Add(NodeDefBuilder("always", "Const")
                              .Attr("dtype", DT_BOOL)
                              .Attr("value", Tensor(true)),
                          &graph_);
      StageTestGraph::Add(NodeDefBuilder("dead", "Switch")
                              .Input(kSource, 0, DT_INT64)
                              .Input("always", 0, DT_BOOL),
                          &graph_);
    }
    stage.AddTo(&graph_, config.dead_record ? "dead"
                         : config.feed      ? "fed"
                                            : kSource);
    StageTestGraph::Add(NodeDefBuilder("done", "Const")
                            .Attr("dtype", DT_BOOL)
                            .Attr("value", Tensor(true))
                            .ControlInput(stage.Node("TensorBufferPut")),
                        &graph_);
    StageTestGraph::Add(NodeDefBuilder("other_put", "TensorBufferPut")
                            .Attr("shared_name", stage.name)
                            .Attr("container", StageTestGraph::kContainer)
                            .Attr("timeout_millis", 0)
                            .Input(std::vector<NodeDefBuilder::NodeOut>{
                                {kOtherSource, 0, DT_INT64}}),
                        &graph_);

    options_ = RunnerOptionsOf(stage);
    for (int i = 0; i < config.num_threads; ++i) {
      options_.add_fetch_ops(
          config.dead_record ? "done:0" : stage.Node("TensorBufferPut"));
    }
    if (config.join_other_source) options_.add_fetch_ops("other_put");
    if (config.feed) {
      (*options_.mutable_named_feed_input_tensors())["fed:0"] = "source:0";
    }
    for (error::Code code : config.closed) options_.add_closed_exceptions(code);
    for (error::Code code : config.ignored) {
      options_.add_ignored_exceptions(code);
    }
    *options_.mutable_run_options() = config.run_options;

    session_.reset(NewSession(SessionOptions()));
    TF_CHECK_OK(session_->Create(graph_));
  }

  ~RunnerSession() {
    if (session_ != nullptr) Close();
  }

  std::shared_ptr<PrefetchRunner> MakeRunner() {
    std::shared_ptr<PrefetchRunner> runner;
    TF_CHECK_OK(PrefetchRunner::Create(session_, options_, &runner));
    return runner;
  }

  std::shared_ptr<PrefetchRunner> StartRunner() {
    std::shared_ptr<PrefetchRunner> runner = MakeRunner();
    TF_CHECK_OK(runner->Start());
    return runner;
  }

  Status Take(int64_t* value) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(
        session_->Run({}, {"prefetch/TensorBufferTake:0"}, {}, &outputs));
    *value = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }

  // Takes records until a take fails, and returns its error.
  Status TakeAll(std::vector<int64_t>* values) {
    while (true) {
      int64_t value;
      TF_RETURN_IF_ERROR(Take(&value));
      values->push_back(value);
    }
  }

  // Runs kInitializer.
  Status Initialize() { return session_->Run({}, {}, {kInitializer}, nullptr); }

  // Closes the session and notifies its observers, in the order of
  // Session::Close, which cancels the steps first.
  void Close() {
    EXPECT_EQ(session_->Close(), OkStatus());
    NotifySessionClosing(session_.get());
  }

  // Closes the session and drops this reference to it.
  void Delete() {
    Close();
    session_.reset();
  }

  std::shared_ptr<Session> session() { return session_; }
  const GraphDef& graph() const { return graph_; }
  PrefetchRunnerOptions* options() { return &options_; }

 private:
  GraphDef graph_;
  PrefetchRunnerOptions options_;
  std::shared_ptr<Session> session_;
};

// Returns 0, 1 .. end - 1.
inline std::vector<int64_t> Range(int64_t end) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < end; ++i) values.push_back(i);
  return values;
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_RUNNER_STAGE_H_
