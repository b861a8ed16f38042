// SPDX-License-Identifier: Apache-2.0
//
// Tests SmartStage in a session: a step sees the same values with SmartStage as
// without it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/testing/test_graph.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs a session over the graph that a test builds, with the runners of its
// stages.
class SmartStagePassTest : public ::testing::Test {
 protected:
  SmartStagePassTest() : iterator_(graph_.Iterator("iterator")) {
    graph_.InitializeWithRange("initialize", iterator_, 0, 5);
    fields_.set_do_smart_stage(true);
  }

  ~SmartStagePassTest() override {
    runners_.clear();
    if (session_ != nullptr) TF_CHECK_OK(session_->Close());
  }

  Status Start() {
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(1);
    // The graph may be extended, as in a Python session.
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    EXPECT_TRUE(options.config.mutable_graph_options()
                    ->mutable_optimizer_options()
                    ->MergeFromString(fields_.SerializeAsString()));
    session_.reset(NewSession(options));
    GraphDef def;
    graph_.get()->ToGraphDef(&def);
    TF_RETURN_IF_ERROR(session_->Create(def));
    TF_RETURN_IF_ERROR(session_->Run({}, {}, {"initialize"}, nullptr));
    if (before_runners_ != nullptr) TF_RETURN_IF_ERROR(before_runners_());
    std::vector<PrefetchRunnerOptions> runners;
    TF_RETURN_IF_ERROR(FindRunnersOfSession(session_.get(), {}, &runners));
    for (const PrefetchRunnerOptions& runner : runners) {
      runners_.emplace_back();
      TF_RETURN_IF_ERROR(
          PrefetchRunner::Create(session_, runner, &runners_.back()));
      TF_RETURN_IF_ERROR(runners_.back()->Start());
    }
    return OkStatus();
  }

  // Adds nodes to the session's graph.
  Status Extend(const std::function<void(TestGraph*)>& add) {
    TestGraph later;
    add(&later);
    GraphDef extension;
    later.get()->ToGraphDef(&extension);
    return session_->Extend(extension);
  }

  Status Run(const std::string& tensor, int64_t* value) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run({}, {tensor}, {}, &outputs));
    *value = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }

  TestGraph graph_;
  Node* iterator_;
  OptimizerFields fields_;
  // Called after the iterator is initialised and before the runners start.
  std::function<Status()> before_runners_;
  std::shared_ptr<Session> session_;
  std::vector<std::shared_ptr<PrefetchRunner>> runners_;
};

TEST_F(SmartStagePassTest, RecordsArriveInOrderBeforeTheEndOfTheData) {
  Node* a = graph_.Neg("a", graph_.GetNext("next", iterator_));
  graph_.Target("target", {graph_.Neg("b", a)});
  for (const bool smart_stage : {true, false}) {
    fields_.set_do_smart_stage(smart_stage);
    runners_.clear();
    ASSERT_EQ(Start(), OkStatus());
    EXPECT_EQ(runners_.size(), smart_stage ? 1 : 0);
    for (int64_t i = 0; i < 5; ++i) {
      int64_t value = -1;
      ASSERT_EQ(Run("target:0", &value), OkStatus());
      EXPECT_EQ(value, i);
    }
    int64_t value = -1;
    EXPECT_TRUE(errors::IsOutOfRange(Run("target:0", &value)));
    runners_.clear();
    TF_CHECK_OK(session_->Close());
  }
}

// The name of a staged node refers to the value that the step sees.
TEST_F(SmartStagePassTest, FetchesOfStagedNodesComeFromTheStepsRecord) {
  Node* next = graph_.GetNext("next", iterator_);
  graph_.Target("target", {graph_.Neg("a", next), next});
  ASSERT_EQ(Start(), OkStatus());
  for (int64_t i = 0; i < 5; ++i) {
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({}, {"target:0", "a:0", "next:0"}, {}, &outputs),
              OkStatus());
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), -i);
    EXPECT_EQ(outputs[1].scalar<int64_t>()(), -i);
    EXPECT_EQ(outputs[2].scalar<int64_t>()(), i);
  }
}

TEST_F(SmartStagePassTest, ATensorThatIsNotCarriedIsFetchedFromTheRecord) {
  Node* a = graph_.Neg("a", graph_.GetNext("next", iterator_));
  graph_.Target("target", {graph_.Neg("b", a)});
  ASSERT_EQ(Start(), OkStatus());
  for (int64_t i = 0; i < 5; ++i) {
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({}, {"target:0", "a:0"}, {}, &outputs), OkStatus());
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), i);
    EXPECT_EQ(outputs[1].scalar<int64_t>()(), -i);
  }
}

TEST_F(SmartStagePassTest, FetchingADrawThatIsNotCarriedFails) {
  Node* next = graph_.GetNext("next", iterator_);
  Node* a = graph_.AddN("a", {next, graph_.Random("draw")});
  graph_.Target("target", {graph_.Neg("b", a)});
  ASSERT_EQ(Start(), OkStatus());
  int64_t value = -1;
  const Status status = Run("a:0", &value);
  EXPECT_TRUE(errors::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'draw:0'"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("tf.train.mark_target_node"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("The run needs it for 'a:0'"));
}

// The placer enforces the colocation groups on each side.
TEST_F(SmartStagePassTest, ColocationWithStagedNodesIsKept) {
  Node* next = graph_.GetNext("next", iterator_);
  next->set_requested_device("/device:CPU:0");
  Node* a = graph_.Neg("a", next);
  a->AddAttr("_class", std::vector<std::string>{"loc:@next"});
  Node* target = graph_.Target("target", {graph_.Neg("b", a)});
  target->AddAttr("_class", std::vector<std::string>{"loc:@a"});
  ASSERT_EQ(Start(), OkStatus());
  int64_t value = -1;
  ASSERT_EQ(Run("target:0", &value), OkStatus());
  EXPECT_EQ(value, 0);
}

TEST_F(SmartStagePassTest, InitialisingTheIteratorRestartsTheStage) {
  graph_.InitializeWithRange("initialize_again", iterator_, 100, 103);
  graph_.Target("target", {graph_.GetNext("next", iterator_)});
  fields_.mutable_smart_stage_options()->set_capacity(3);
  ASSERT_EQ(Start(), OkStatus());
  int64_t value = -1;
  ASSERT_EQ(Run("target:0", &value), OkStatus());
  EXPECT_EQ(value, 0);
  ASSERT_EQ(session_->Run({}, {}, {"initialize_again"}, nullptr), OkStatus());
  for (int64_t i = 100; i < 103; ++i) {
    ASSERT_EQ(Run("target:0", &value), OkStatus());
    EXPECT_EQ(value, i);
  }
  EXPECT_TRUE(errors::IsOutOfRange(Run("target:0", &value)));
}

// In a run that initialises the iterator, a step takes a record or not; it
// never waits for one, which would arrive only after the run has ended.
TEST_F(SmartStagePassTest, ARunThatInitialisesTheIteratorDoesNotWaitForItself) {
  graph_.Target("target", {graph_.GetNext("next", iterator_)});
  ASSERT_EQ(Start(), OkStatus());
  int64_t value = -1;
  // From here on the stage is known to read the iterator.
  ASSERT_EQ(Run("target:0", &value), OkStatus());
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> outputs;
    const Status status =
        session_->Run({}, {"target:0"}, {"initialize"}, &outputs);
    int64_t next = 0;
    if (!status.ok()) {
      EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("stage 'prefetch'"));
    } else if (outputs[0].scalar<int64_t>()() == 0) {
      // The run read what it had initialised, and so has used its first element.
      next = 1;
    }
    ASSERT_EQ(Run("target:0", &value), OkStatus()) << i << ": " << status;
    EXPECT_EQ(value, next) << i << ": " << status;
  }
}

// The callable continues to take records of the partition that it was made for.
TEST_F(SmartStagePassTest, ACallableWorksAfterTheGraphIsExtended) {
  Node* next = graph_.GetNext("next", iterator_);
  graph_.Target("target", {graph_.Neg("a", next)});
  graph_.Placeholder("step_input");
  GraphDef original;
  graph_.get()->ToGraphDef(&original);
  CallableOptions run;
  run.add_fetch("target:0");
  Session::CallableHandle handle;
  before_runners_ = [&]() -> Status {
    TF_RETURN_IF_ERROR(session_->MakeCallable(run, &handle));
    GraphDef extension;
    NodeDef* sum = extension.add_node();
    sum->set_name("sum");
    sum->set_op("AddV2");
    sum->add_input("next");
    sum->add_input("step_input");
    (*sum->mutable_attr())["T"].set_type(DT_INT64);
    *extension.mutable_versions() = original.versions();
    return session_->Extend(extension);
  };
  ASSERT_EQ(Start(), OkStatus());
  std::vector<Tensor> outputs;
  ASSERT_EQ(session_->RunCallable(handle, {}, &outputs, nullptr), OkStatus());
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 0);
}

TEST_F(SmartStagePassTest, ThatNothingRunsAheadIsSaidOnce) {
  graph_.GetNext("next", iterator_);
  Warnings warnings("nothing to run ahead");
  ASSERT_EQ(Start(), OkStatus());
  ASSERT_EQ(Extend([](TestGraph* later) { later->Placeholder("later"); }),
            OkStatus());
  EXPECT_THAT(warnings.Texts(), ElementsAre(HasSubstr("tf.staging.explain")));
}

// A runner opens its buffer before its producers prepare their runs, so opening
// it is what begins the stages.
TEST_F(SmartStagePassTest, NoStageIsAddedOnceARunnerHasBegunToStart) {
  Node* next = graph_.GetNext("next", iterator_);
  graph_.Target("target", {graph_.Neg("a", next)});
  before_runners_ = [&]() -> Status {
    CallableOptions resume;
    resume.add_target("prefetch/TensorBufferResume");
    Session::CallableHandle handle;
    TF_RETURN_IF_ERROR(session_->MakeCallable(resume, &handle));
    return Extend([](TestGraph* later) {
      Node* iterator = later->Iterator("later_iterator");
      later->InitializeWithRange("later_initialize", iterator, 5, 10);
      Node* next = later->GetNext("later_next", iterator);
      later->Target("later_target",
                    {later->Neg("later_b", later->Neg("later_a", next))});
    });
  };
  ASSERT_EQ(Start(), OkStatus());
  EXPECT_EQ(runners_.size(), 1);
  ASSERT_EQ(session_->Run({}, {}, {"later_initialize"}, nullptr), OkStatus());
  int64_t value = -1;
  ASSERT_EQ(Run("later_target:0", &value), OkStatus());
  EXPECT_EQ(value, 5);
}

TEST_F(SmartStagePassTest, WhatALaterStageNeedsIsFoundWhenItStarts) {
  graph_.GetNext("next", iterator_);
  ASSERT_EQ(Start(), OkStatus());
  ASSERT_EQ(Extend([](TestGraph* later) {
              Node* predicate = later->Less("predicate", later->Const("a", 1),
                                            later->Const("b", 2));
              Node* choice =
                  later->Switch("choice", later->Const("c", 3), predicate);
              Node* merged = later->Merge("merge", {{choice, 0}, {choice, 1}});
              later->Stage("later_stage", {merged});
            }),
            OkStatus());
  PrefetchRunnerOptions stage;
  stage.add_fetch_ops("later_stage/TensorBufferPut");
  std::vector<PrefetchRunnerOptions> runners;
  ASSERT_EQ(FindRunnersOfSession(session_.get(), {stage}, &runners),
            OkStatus());
  ASSERT_EQ(runners.size(), 1);
  EXPECT_THAT(runners[0].fetch_ops(),
              ElementsAre("later_stage/TensorBufferPut/done:0"));
}

// What SmartStage found later would not run, and steps would wait for it.
TEST_F(SmartStagePassTest, NoStageIsAddedOnceTheProgramHasStartedNone) {
  graph_.GetNext("next", iterator_);
  ASSERT_EQ(Start(), OkStatus());
  EXPECT_THAT(runners_, IsEmpty());
  ASSERT_EQ(Extend([](TestGraph* later) {
              Node* iterator = later->Iterator("later_iterator");
              later->InitializeWithRange("later_initialize", iterator, 5, 10);
              Node* next = later->GetNext("later_next", iterator);
              later->Target("later_target", {later->Neg("later_a", next)});
            }),
            OkStatus());
  ASSERT_EQ(session_->Run({}, {}, {"later_initialize"}, nullptr), OkStatus());
  int64_t value = 0;
  ASSERT_EQ(Run("later_target:0", &value), OkStatus());
  EXPECT_EQ(value, -5);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
