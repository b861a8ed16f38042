// SPDX-License-Identifier: Apache-2.0
//
// Tests in which threads a local session reads, puts and ends a staged run that
// only moves a record.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/tsl/profiler/backends/cpu/traceme_recorder.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/runtime/staged_run_threads.h"
#include "tensorflow_staging/core/sources/stage.h"
#include "tensorflow_staging/core/sources/staged_run.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::tsl::profiler::TraceMeRecorder;

constexpr char kRead[] = "IteratorGetNextOp::DoCompute";
constexpr char kEnd[] = "ExecutorDoneCallback";
constexpr char kPut[] = "TensorBufferPut";

// How many events of each kernel or part of the runtime there were in the thread
// that asks, and in others, while `work` ran.
struct Events {
  std::map<std::string, int> here, elsewhere;
};

template <typename Work>
Events EventsOf(Work work) {
  EXPECT_TRUE(TraceMeRecorder::Start(tsl::profiler::TraceMeLevel::kInfo));
  work();
  Events events;
  const auto here = static_cast<uint32_t>(Env::Default()->GetCurrentThreadId());
  for (const auto& thread : TraceMeRecorder::Stop()) {
    auto& counts = thread.thread.tid == here ? events.here : events.elsewhere;
    for (const auto& event : thread.events) {
      const absl::string_view name = event.name;
      ++counts[std::string(name.substr(0, name.find('#')))];
    }
  }
  return events;
}

// A local session whose stage has room for one record, read from an iterator.
class ReadInCallerTest : public ::testing::Test {
 protected:
  // The region reads `reads` elements for a record, and gives up after a time
  // unless that is 0.
  void Begin(int reads, int64_t timeout_millis = 0) {
    GraphDef graph;
    AddRangeSource(/*stop=*/1000, &graph);
    NodeDefBuilder all("all", "Identity");
    all.Input("record", 0, DT_INT64);
    if (reads > 1) {
      NodeDef second = graph.node(graph.node_size() - 1);
      second.set_name("second");
      *graph.add_node() = second;
      all.ControlInput("second");
    }
    StageTestGraph::Add(all, &graph);
    stage_.AddTo(&graph, "all");
    session_.reset(NewSession(SessionOptions()));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
    {
      const ScopedResumedStage resumed(&resumed_);
      RunOptions here;
      here.set_inter_op_thread_pool(-1);
      TF_CHECK_OK(session_->Run(
          here, {}, {}, {stage_.Node("TensorBufferResume")}, nullptr, nullptr));
    }
    CallableOptions put;
    put.add_target(stage_.Node("TensorBufferPut"));
    put.mutable_run_options()->set_timeout_in_ms(timeout_millis);
    put_ = Prepare(put);
    // A step in the thread that asks for it.
    CallableOptions take;
    take.add_fetch(stage_.Node("TensorBufferTake:0"));
    take.mutable_run_options()->set_inter_op_thread_pool(-1);
    take_ = Prepare(take);
    threads_.AddProducer();
    // The first run of a callable is another one: it prepares what later ones use.
    Produce();
    // Which of several reads is the first one is left to the runtime.
    EXPECT_LT(Take(), reads);
  }

  ~ReadInCallerTest() override {
    session_->Close().IgnoreError();
    threads_.Retire();
  }

  // Does what a producer does for a record.
  void Produce() {
    StagedCall call;
    call.run = std::make_shared<StagedRun>(resumed_.GetNewRef(),
                                           ProducerId(/*source=*/1,
                                                      /*number=*/1));
    const std::shared_ptr<StagedRun> run = call.run;
    call.threads = &threads_;
    call.runs_in_caller = true;
    const ScopedStagedCall scope(std::move(call));
    std::vector<Tensor> nothing;
    const Status status = session_->RunCallable(put_, {}, &nothing, nullptr);
    EXPECT_EQ(status, OkStatus());
    run->End(status);
  }

  int64_t Take() {
    std::vector<Tensor> record;
    TF_CHECK_OK(session_->RunCallable(take_, {}, &record, nullptr));
    return record[0].scalar<int64_t>()();
  }

 private:
  Session::CallableHandle Prepare(const CallableOptions& options) {
    Session::CallableHandle handle = 0;
    TF_CHECK_OK(session_->MakeCallable(options, &handle));
    return handle;
  }

  StageTestGraph stage_;
  std::unique_ptr<Session> session_;
  core::WeakPtr<Stage> resumed_;
  Session::CallableHandle put_ = 0;
  Session::CallableHandle take_ = 0;
  StagedRunThreads threads_;
};

TEST_F(ReadInCallerTest, ARunWithRoomForItsRecordNeedsNoOtherThread) {
  Begin(/*reads=*/1);
  Events events = EventsOf([this] { Produce(); });
  for (const char* event : {kRead, kPut, kEnd}) {
    EXPECT_EQ(events.here[event], 1) << event;
    EXPECT_EQ(events.elsewhere[event], 0) << event;
  }
  EXPECT_EQ(Take(), 1);
}

TEST_F(ReadInCallerTest, OfSeveralReadsNoneHoldsUpTheOthers) {
  Begin(/*reads=*/2);
  Events events = EventsOf([this] { Produce(); });
  EXPECT_EQ(events.here[kRead], 0);
  EXPECT_EQ(events.elsewhere[kRead], 2);
}

TEST_F(ReadInCallerTest, TheCallerOfARunWithADeadlineWatchesIt) {
  Begin(/*reads=*/1, /*timeout_millis=*/60000);
  Events events = EventsOf([this] { Produce(); });
  EXPECT_EQ(events.here[kRead], 0);
  EXPECT_EQ(events.elsewhere[kRead], 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
