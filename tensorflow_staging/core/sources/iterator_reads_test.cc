// SPDX-License-Identifier: Apache-2.0
//
// Tests the hooks in the patched IteratorResource: stages in local sessions
// that read real iterators.

#include "tensorflow_staging/core/sources/iterator_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/runtime/session_observers.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Numbers = std::vector<int64_t>;

const DataTypeVector& Types() {
  static const auto* const types = new DataTypeVector{DT_INT64};
  return *types;
}

const std::vector<PartialTensorShape>& Shapes() {
  static const auto* const shapes =
      new std::vector<PartialTensorShape>{PartialTensorShape({})};
  return *shapes;
}

// Numbers from `begin` to `end` - 1.
Numbers Range(int64_t begin, int64_t end) {
  Numbers numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

// A session with a stage that reads iterators. First add the nodes, then call
// Create.
class IteratorStageTest : public ::testing::Test {
 protected:
  ~IteratorStageTest() override { Close(); }

  void Add(NodeDefBuilder builder) { StageTestGraph::Add(builder, &graph_); }

  void AddConst(const std::string& name, int64_t value) {
    Add(StageTestGraph::Const(name, Tensor(value)));
  }

  // Adds an iterator, with <name>/next, which reads it after the node `after`,
  // and <name>/probe, which reads it, too.
  void AddIterator(const std::string& name, const std::string& after = "") {
    Add(NodeDefBuilder(name, "IteratorV2")
            .Attr("shared_name", name)
            .Attr("container", "")
            .Attr("output_types", Types())
            .Attr("output_shapes", Shapes()));
    NodeDefBuilder next(name + "/next", "IteratorGetNext");
    next.Input(name, 0, DT_RESOURCE)
        .Attr("output_types", Types())
        .Attr("output_shapes", Shapes());
    if (!after.empty()) next.ControlInput(after);
    Add(next);
    Add(NodeDefBuilder(name + "/probe", "IteratorGetNext")
            .Input(name, 0, DT_RESOURCE)
            .Attr("output_types", Types())
            .Attr("output_shapes", Shapes()));
    Add(NodeDefBuilder(name + "/save", "SerializeIterator")
            .Input(name, 0, DT_RESOURCE));
    Add(NodeDefBuilder(name + "/position", "Placeholder")
            .Attr("dtype", DT_VARIANT));
    Add(NodeDefBuilder(name + "/restore", "DeserializeIterator")
            .Input(name, 0, DT_RESOURCE)
            .Input(name + "/position", 0, DT_VARIANT));
  }

  // Adds the node `name`, which gives `iterator` the numbers from `begin` to
  // `end` - 1, unless <name>/begin is fed, after the node `after`. It
  // fails if `step` is 0.
  void AddInitialiser(const std::string& name, const std::string& iterator,
                      int64_t begin, int64_t end, int64_t step = 1,
                      const std::string& after = "") {
    AddConst(name + "/begin", begin);
    AddConst(name + "/end", end);
    AddConst(name + "/step", step);
    Add(NodeDefBuilder(name + "/dataset", "RangeDataset")
            .Input(name + "/begin", 0, DT_INT64)
            .Input(name + "/end", 0, DT_INT64)
            .Input(name + "/step", 0, DT_INT64)
            .Attr("output_types", Types())
            .Attr("output_shapes", Shapes()));
    NodeDefBuilder initialiser(name, "MakeIterator");
    initialiser.Input(name + "/dataset", 0, DT_VARIANT)
        .Input(iterator, 0, DT_RESOURCE);
    if (!after.empty()) initialiser.ControlInput(after);
    Add(initialiser);
  }

  // Adds the node `record`: kMany times the next number of one iterator plus
  // that of another one, which is read after it.
  void AddPair(const std::string& one, const std::string& other) {
    AddIterator(one);
    AddIterator(other, /*after=*/one + "/next");
    AddConst("many", kMany);
    Add(NodeDefBuilder("high", "Mul")
            .Input(one + "/next", 0, DT_INT64)
            .Input("many", 0, DT_INT64));
    Add(NodeDefBuilder("record", "AddV2")
            .Input("high", 0, DT_INT64)
            .Input(other + "/next", 0, DT_INT64));
  }

  // Creates the session, with a stage of these records; of those before if
  // `record` is empty.
  void Create(const std::string& record) {
    stage_.capacity = 3;
    if (!record.empty()) stage_.AddTo(&graph_, record);
    SessionOptions options;
    // Some tests stop several.
    options.config.set_inter_op_parallelism_threads(8);
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph_));
  }

  // Creates the session with a stage of the numbers from 0 to `end` - 1, which
  // "init" has given "iterator".
  void CreateWithNumbers(int64_t end) {
    AddIterator("iterator");
    AddInitialiser("init", "iterator", 0, end);
    Create("iterator/next");
    EXPECT_EQ(Run({"init"}), OkStatus());
  }

  void StartRunner(int producers = 1) {
    PrefetchRunnerOptions options = RunnerOptionsOf(stage_);
    for (int i = 0; i < producers; ++i) {
      options.add_fetch_ops(stage_.Node("TensorBufferPut"));
    }
    options.add_closed_exceptions(error::OUT_OF_RANGE);
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  void Close() {
    if (session_ == nullptr) return;
    EXPECT_EQ(session_->Close(), OkStatus());
    NotifySessionClosing(session_.get());
    runner_.reset();
    session_.reset();
  }

  Status Run(const std::vector<std::string>& targets,
             const std::vector<std::pair<std::string, Tensor>>& feeds = {}) {
    return session_->Run(feeds, {}, targets, nullptr);
  }

  Status Take(int64_t* value) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run(
        {}, {stage_.Node("TensorBufferTake") + ":0"}, {}, &outputs));
    *value = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }

  // Takes a record, or fails the test and returns -1.
  int64_t Take() {
    int64_t value = -1;
    EXPECT_EQ(Take(&value), OkStatus());
    return value;
  }

  // Reads an iterator beside the stage, or fails the test and returns -1.
  int64_t Probe(const std::string& iterator) {
    std::vector<Tensor> outputs;
    const Status status =
        session_->Run({}, {iterator + "/probe:0"}, {}, &outputs);
    EXPECT_EQ(status, OkStatus());
    return status.ok() ? outputs[0].scalar<int64_t>()() : -1;
  }

  // How many records the stage has.
  int64_t Size() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {stage_.Node("TensorBufferSize") + ":0"}, {},
                              &outputs));
    return outputs[0].scalar<int64_t>()();
  }

  // Returns the DebugString of the stage's buffer.
  std::string Buffer() {
    const DeviceMgr* devices = nullptr;
    TF_CHECK_OK(session_->LocalDeviceManager(&devices));
    TensorBuffer* buffer = nullptr;
    TF_CHECK_OK(devices->ListDevices()[0]->resource_manager()->Lookup(
        StageTestGraph::kContainer, stage_.name, &buffer));
    const core::ScopedUnref unref(buffer);
    return buffer->DebugString();
  }

  // Takes what is left of the data.
  Numbers TakeAll() {
    Numbers numbers;
    Status status;
    int64_t value;
    while ((status = Take(&value)).ok()) numbers.push_back(value);
    EXPECT_TRUE(errors::IsOutOfRange(status)) << status;
    return numbers;
  }

  Tensor Save(const std::string& iterator) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {iterator + "/save:0"}, {}, &outputs));
    return outputs[0];
  }

  Status Restore(const std::string& iterator, const Tensor& position) {
    return Run({iterator + "/restore"}, {{iterator + "/position", position}});
  }

  static constexpr int64_t kMany = 1000000;

  StageTestGraph stage_;
  GraphDef graph_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

TEST_F(IteratorStageTest, AnotherDatasetBeginsTheStageAnew) {
  AddIterator("iterator");
  AddInitialiser("init_one", "iterator", 0, 20);
  AddInitialiser("init_other", "iterator", 100, 120);
  Create("iterator/next");
  EXPECT_EQ(Run({"init_one"}), OkStatus());
  StartRunner();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Run({"init_one"}), OkStatus());
    EXPECT_EQ(TakeAll(), Range(0, 20));
    EXPECT_EQ(Run({"init_other"}), OkStatus());
    EXPECT_EQ(TakeAll(), Range(100, 120));
  }
}

TEST_F(IteratorStageTest, InTheMiddleOfTheDataTheRestIsDropped) {
  CreateWithNumbers(kMany);
  StartRunner();
  for (int64_t i = 1; i <= 50; ++i) {
    EXPECT_EQ(Run({"init"}, {{"init/begin", Tensor(100 * i)}}), OkStatus());
    for (int64_t j = 0; j < i % 7; ++j) ASSERT_EQ(Take(), 100 * i + j);
  }
}

TEST_F(IteratorStageTest, AnInitialiserThatFailsChangesNothing) {
  AddIterator("iterator");
  AddInitialiser("init", "iterator", 0, 10);
  AddInitialiser("fails", "iterator", 100, 110, /*step=*/0);
  Create("iterator/next");
  EXPECT_EQ(Run({"init"}), OkStatus());
  StartRunner();
  EXPECT_EQ(Take(), 0);
  EXPECT_FALSE(Run({"fails"}).ok());
  EXPECT_EQ(TakeAll(), Range(1, 10));
}

TEST_F(IteratorStageTest, AFunctionMayReadTheIterator) {
  AddIterator("iterator");
  AddInitialiser("init", "iterator", 0, kMany);
  *graph_.mutable_library()->add_function() = FunctionDefHelper::Create(
      "ReadsNext", {"handle: resource"}, {"number: int64"}, {},
      {{{"next"},
        "IteratorGetNext",
        {"handle"},
        {{"output_types", Types()}, {"output_shapes", Shapes()}}}},
      {{"number", "next:components:0"}});
  NameAttrList function;
  function.set_name("ReadsNext");
  Add(NodeDefBuilder("call", "StatefulPartitionedCall")
          .Input(std::vector<NodeDefBuilder::NodeOut>{
              {"iterator", 0, DT_RESOURCE}})
          .Attr("Tout", Types())
          .Attr("f", function));
  Create("call");
  EXPECT_EQ(Run({"init"}), OkStatus());
  StartRunner();
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Run({"init"}, {{"init/begin", Tensor(int64_t{100})}}), OkStatus());
  EXPECT_EQ(Take(), 100);
}

// No record is of one iterator before and of the other one after the run that
// initialises both, and none is lost.
TEST_F(IteratorStageTest, OneRunMayInitialiseTwoIterators) {
  AddPair("one", "other");
  AddInitialiser("init_one", "one", 0, kMany);
  AddInitialiser("init_other", "other", 0, kMany);
  Create("record");
  EXPECT_EQ(Run({"init_one", "init_other"}), OkStatus());
  StartRunner();
  for (int64_t i = 1; i <= 50; ++i) {
    const Tensor begin(1000 * i);
    EXPECT_EQ(Run({"init_one", "init_other"},
                  {{"init_one/begin", begin}, {"init_other/begin", begin}}),
              OkStatus());
    for (int64_t j = 0; j < 2; ++j) {
      ASSERT_EQ(Take(), (1000 * i + j) * (kMany + 1));
    }
  }
}

// What a stage reads between the two changes is of one of them.
TEST_F(IteratorStageTest, ARunThatChangesTwoIteratorsLeavesNoMixedRecord) {
  AddPair("one", "other");
  AddInitialiser("init_one", "one", 0, kMany);
  AddInitialiser("init_other", "other", 0, kMany);
  AddInitialiser("init_one_again", "one", -1000, kMany);
  Add(NodeDefBuilder("queue", "FIFOQueueV2").Attr("component_types", Types()));
  Add(NodeDefBuilder("enqueue", "QueueEnqueueV2")
          .Input("queue", 0, DT_RESOURCE)
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"many", 0, DT_INT64}}));
  // The run that initialises both initialises the other one when something is
  // in the queue.
  Add(NodeDefBuilder("gate", "QueueDequeueV2")
          .Input("queue", 0, DT_RESOURCE)
          .Attr("component_types", Types())
          .ControlInput("init_one_again"));
  AddInitialiser("init_other_again", "other", -1000, kMany, /*step=*/1, "gate");
  Create("record");
  EXPECT_EQ(Run({"init_one", "init_other"}), OkStatus());
  std::unique_ptr<Thread> run(Env::Default()->StartThread(
      {}, "run", [this] { EXPECT_EQ(Run({"init_other_again"}), OkStatus()); }));
  while (Probe("one") >= 0) std::this_thread::yield();
  StartRunner();
  while (Size() < 3) std::this_thread::yield();
  EXPECT_EQ(Run({"enqueue"}), OkStatus());
  run.reset();
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(Take(), (i - 999) * kMany + i - 1000);
  }
}

TEST_F(IteratorStageTest, AStageMayBeginBeforeItsIterator) {
  AddIterator("iterator");
  AddInitialiser("init", "iterator", 0, 10);
  Create("iterator/next");
  StartRunner();
  int64_t value;
  const Status status = Take(&value);
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Run({"init"}), OkStatus());
  EXPECT_EQ(TakeAll(), Range(0, 10));
}

TEST_F(IteratorStageTest, NoElementIsLostIfOneOfTwoIteratorsComesLater) {
  AddPair("one", "other");
  AddInitialiser("init_one", "one", 0, 10);
  AddInitialiser("init_other", "other", 0, 10);
  Create("record");
  EXPECT_EQ(Run({"init_one"}), OkStatus());
  StartRunner();
  int64_t value;
  const Status status = Take(&value);
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Run({"init_other"}), OkStatus());
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(Take(), i * (kMany + 1));
}

TEST_F(IteratorStageTest, TheRunThatInitialisesMayTake) {
  AddIterator("iterator");
  AddInitialiser("init", "iterator", 0, 10);
  Add(NodeDefBuilder("take", "TensorBufferTake")
          .Attr("shared_name", stage_.name)
          .Attr("container", StageTestGraph::kContainer)
          .Attr("capacity", 3)
          .Attr("dtypes", Types())
          .ControlInput("init"));
  Create("iterator/next");
  EXPECT_EQ(Run({"init"}), OkStatus());
  StartRunner();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Take(), 0);
    EXPECT_EQ(Run({"take"}), OkStatus());
    EXPECT_EQ(TakeAll(), Range(1, 10));
    EXPECT_EQ(Run({"init"}), OkStatus());
  }
}

TEST_F(IteratorStageTest, ARestoredStageGoesOnWhereItWasSaved) {
  CreateWithNumbers(20);
  StartRunner();
  EXPECT_EQ(Take(), 0);
  const Tensor saved = Save("iterator");
  // The stage goes on when it has been saved.
  EXPECT_EQ(TakeAll(), Range(1, 20));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Restore("iterator", saved), OkStatus());
    EXPECT_EQ(TakeAll(), Range(1, 20));
  }
}

TEST_F(IteratorStageTest, SeveralProducersLoseNothingInACheckpoint) {
  CreateWithNumbers(200);
  StartRunner(/*producers=*/4);
  for (int64_t i = 0; i < 20; ++i) {
    Take();
    const Tensor saved = Save("iterator");
    Take();
    EXPECT_EQ(Restore("iterator", saved), OkStatus());
  }
  EXPECT_EQ(TakeAll().size(), 180);
}

TEST_F(IteratorStageTest, ARestoreMayComeBeforeTheInitialiserAndTheStage) {
  AddIterator("iterator");
  AddInitialiser("init", "iterator", 0, 20);
  AddInitialiser("init_other", "iterator", 100, 120);
  Create("iterator/next");
  EXPECT_EQ(Run({"init"}), OkStatus());
  StartRunner();
  EXPECT_EQ(Take(), 0);
  const Tensor saved = Save("iterator");
  Close();
  Create("");
  EXPECT_EQ(Restore("iterator", saved), OkStatus());
  // It waits for the initialiser of its dataset.
  EXPECT_EQ(Run({"init_other"}), OkStatus());
  EXPECT_EQ(Run({"init"}), OkStatus());
  StartRunner();
  EXPECT_EQ(TakeAll(), Range(1, 20));
  // Later, the initialiser begins the data anew.
  EXPECT_EQ(Run({"init"}), OkStatus());
  EXPECT_EQ(TakeAll(), Range(0, 20));
}

TEST_F(IteratorStageTest, WhatReadsARestoredIteratorFirstGetsTheNextElement) {
  CreateWithNumbers(20);
  StartRunner();
  EXPECT_EQ(Take(), 0);
  while (Size() < 3) std::this_thread::yield();
  const Tensor saved = Save("iterator");
  Close();
  Create("");
  EXPECT_EQ(Run({"init"}), OkStatus());
  EXPECT_EQ(Restore("iterator", saved), OkStatus());
  EXPECT_EQ(Probe("iterator"), 1);
  EXPECT_EQ(Probe("iterator"), 2);
  StartRunner();
  EXPECT_EQ(TakeAll(), Range(3, 20));
}

// The stage is full when it is saved: it has read the end, and no step has got
// it.
TEST_F(IteratorStageTest, AnEndThatNoStepHasGotIsRestoredToo) {
  CreateWithNumbers(3);
  StartRunner();
  EXPECT_EQ(Take(), 0);
  while (!absl::StrContains(Buffer(), "closed, 2 of")) {
    std::this_thread::yield();
  }
  const Tensor saved = Save("iterator");
  EXPECT_EQ(TakeAll(), Range(1, 3));
  EXPECT_EQ(TakeAll(), Numbers());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Restore("iterator", saved), OkStatus());
    EXPECT_EQ(TakeAll(), Range(1, 3));
    EXPECT_EQ(TakeAll(), Numbers());
  }
}

TEST_F(IteratorStageTest, ANodeBesideTheStageGetsTheNextElement) {
  CreateWithNumbers(kMany);
  StartRunner();
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(i % 3 == 1 ? Probe("iterator") : Take(), i);
  }
}

TEST_F(IteratorStageTest, ANodeThatOftenReadsBesideTheStageIsWarnedOfOnce) {
  CreateWithNumbers(kMany);
  Warnings warnings("reads ahead of the steps");
  // Before the stage has read anything, it makes nothing again.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Probe("iterator"), i);
  StartRunner();
  for (int i = 0; i < 20; ++i) {
    while (Size() < 1) std::this_thread::yield();
    EXPECT_EQ(Probe("iterator"), 20 + i);
    if (i < 9) {
      EXPECT_THAT(warnings.Texts(), IsEmpty());
    } else {
      EXPECT_THAT(warnings.Texts(), ElementsAre(HasSubstr("'iterator/probe'")));
    }
  }
}

// A run saves one iterator of a stage and initialises the other one.
TEST_F(IteratorStageTest, ASaveBesideAnInitialiserDoesNotWaitForItself) {
  AddPair("one", "other");
  AddInitialiser("init_one", "one", 0, kMany);
  AddInitialiser("init_other", "other", 0, kMany);
  Create("record");
  EXPECT_EQ(Run({"init_one", "init_other"}), OkStatus());
  StartRunner();
  for (int64_t i = 0; i < 50; ++i) {
    std::vector<Tensor> saved;
    ASSERT_EQ(session_->Run({{"init_other/begin", Tensor(1000 * i)}},
                            {"one/save:0"}, {"init_other"}, &saved),
              OkStatus());
    // What the stage had of `one` comes again.
    ASSERT_EQ(Take(), 2 * i * kMany + 1000 * i);
    EXPECT_EQ(Restore("one", saved[0]), OkStatus());
    ASSERT_EQ(Take(), 2 * i * kMany + 1000 * i + 1);
    ASSERT_EQ(Take(), (2 * i + 1) * kMany + 1000 * i + 2);
  }
}

// A dataset whose elements pass a hook on their way.
std::function<void(OpKernelContext*)>* PassHook() {
  static auto* const hook = new std::function<void(OpKernelContext*)>;
  return hook;
}

REGISTER_OP("StagingTestPass")
    .Input("number: int64")
    .Output("same: int64")
    .SetIsStateful();

class PassOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    if (*PassHook() != nullptr) (*PassHook())(ctx);
    ctx->set_output(0, ctx->input(0));
  }
};

REGISTER_KERNEL_BUILDER(Name("StagingTestPass").Device(DEVICE_CPU), PassOp);

class HookedIteratorTest : public IteratorStageTest {
 protected:
  ~HookedIteratorTest() override {
    Close();
    *PassHook() = nullptr;
  }

  void SetUp() override {
    AddIterator("iterator");
    AddInitialiser("plain", "iterator", 0, 20);
    *graph_.mutable_library()->add_function() = FunctionDefHelper::Create(
        "Passes", {"number: int64"}, {"same: int64"}, {},
        {{{"pass"}, "StagingTestPass", {"number"}}}, {{"same", "pass:same:0"}});
    NameAttrList function;
    function.set_name("Passes");
    Add(NodeDefBuilder("hooked/dataset", "MapDataset")
            .Input("plain/dataset", 0, DT_VARIANT)
            .Input(std::vector<NodeDefBuilder::NodeOut>{})
            .Attr("f", function)
            .Attr("Targuments", DataTypeVector{})
            .Attr("output_types", Types())
            .Attr("output_shapes", Shapes()));
    Add(NodeDefBuilder("hooked", "MakeIterator")
            .Input("hooked/dataset", 0, DT_VARIANT)
            .Input("iterator", 0, DT_RESOURCE));
    Create("iterator/next");
    ASSERT_EQ(Run({"hooked"}), OkStatus());
  }

  // Starts the stage. Its read after `before` others stops in the midst, until
  // may_go_on_.
  void StartAndStopReadAfter(int before) {
    *PassHook() = [this, before](OpKernelContext*) {
      if (calls_++ != before) return;
      reads_.Notify();
      may_go_on_.WaitForNotification();
    };
    StartRunner();
    reads_.WaitForNotification();
  }

  std::unique_ptr<Thread> InThread(std::function<void()> call) {
    return std::unique_ptr<Thread>(
        Env::Default()->StartThread({}, "test", std::move(call)));
  }

  std::atomic<int> calls_ = 0;
  Notification reads_, may_go_on_;
};

TEST_F(HookedIteratorTest, SavesAtOnceWaitForAReadAndBothHaveItsElement) {
  StartAndStopReadAfter(2);
  Tensor saved[2];
  std::atomic<int> has_saved = 0;
  {
    std::unique_ptr<Thread> saves[2];
    for (int i = 0; i < 2; ++i) {
      saves[i] = InThread([&, i] {
        saved[i] = Save("iterator");
        ++has_saved;
      });
    }
    Env::Default()->SleepForMicroseconds(20000);
    EXPECT_EQ(has_saved, 0);
    may_go_on_.Notify();
  }
  EXPECT_EQ(TakeAll(), Range(0, 20));
  for (const Tensor& position : saved) {
    EXPECT_EQ(Restore("iterator", position), OkStatus());
    EXPECT_EQ(TakeAll(), Range(0, 20));
  }
}

TEST_F(HookedIteratorTest, SavesBesideStepsHaveWhatComesNext) {
  StartRunner(/*producers=*/1);
  std::vector<Tensor> saved[2];
  std::atomic<bool> stop = false;
  {
    std::unique_ptr<Thread> saves[2];
    for (std::vector<Tensor>& positions : saved) {
      saves[&positions - saved] = InThread([&] {
        do {
          positions.push_back(Save("iterator"));
        } while (!stop);
      });
    }
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(Take(), i);
    stop = true;
  }
  for (const std::vector<Tensor>& positions : saved) {
    int64_t begin = 0;
    for (const Tensor& position : positions) {
      EXPECT_EQ(Restore("iterator", position), OkStatus());
      const Numbers rest = TakeAll();
      const int64_t next = rest.empty() ? 20 : rest[0];
      EXPECT_EQ(rest, Range(next, 20));
      EXPECT_GE(next, begin);
      begin = next;
    }
  }
}

// It would hold up nothing but itself, and what it yields is void.
TEST_F(HookedIteratorTest, AnInitialiserCancelsAStagedReadThatTakesLong) {
  Notification is_cancelled;
  *PassHook() = [&](OpKernelContext* ctx) {
    if (reads_.HasBeenNotified()) return;
    CancellationManager* const cancellation = ctx->cancellation_manager();
    EXPECT_TRUE(cancellation->RegisterCallback(
        cancellation->get_cancellation_token(),
        [&is_cancelled] { is_cancelled.Notify(); }));
    reads_.Notify();
    is_cancelled.WaitForNotification();
  };
  StartRunner();
  reads_.WaitForNotification();
  EXPECT_EQ(Run({"plain"}), OkStatus());
  is_cancelled.WaitForNotification();
  EXPECT_EQ(TakeAll(), Range(0, 20));
}

// A read that began before anything was read ahead takes no turn.
TEST_F(HookedIteratorTest, AnInitialiserCancelsNoReadOfTheProgram) {
  *PassHook() = [this](OpKernelContext* ctx) {
    if (reads_.HasBeenNotified()) return;
    reads_.Notify();
    may_go_on_.WaitForNotification();
    EXPECT_FALSE(ctx->cancellation_manager()->IsCancelled());
  };
  int64_t value = -1;
  std::unique_ptr<Thread> program =
      InThread([&] { value = Probe("iterator"); });
  reads_.WaitForNotification();
  StartRunner();
  // Time for the stage to wait for the same dataset.
  Env::Default()->SleepForMicroseconds(20000);
  EXPECT_EQ(Run({"plain"}), OkStatus());
  may_go_on_.Notify();
  program.reset();
  EXPECT_EQ(value, 0);
  EXPECT_EQ(TakeAll(), Range(0, 20));
}

// An older element comes back while a run reads the next one.
TEST_F(HookedIteratorTest, AReadThatANodeBesideTheStageOvertakesIsRepeated) {
  StartAndStopReadAfter(2);
  EXPECT_EQ(Take(), 0);
  // It waits for the read of 2, and then gets 1.
  std::unique_ptr<Thread> program =
      InThread([&] { EXPECT_EQ(Probe("iterator"), 1); });
  EXPECT_EQ(Run({stage_.Node("TensorBufferDiscard")}), OkStatus());
  may_go_on_.Notify();
  program.reset();
  EXPECT_EQ(TakeAll(), Range(2, 20));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
