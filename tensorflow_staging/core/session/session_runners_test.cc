// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/session/session_runners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;

using Runners = std::vector<PrefetchRunnerOptions>;

class SessionRunnersTest : public ::testing::Test {
 protected:
  SessionRunnersTest() { fields_.set_do_smart_stage(true); }

  ConfigProto Config() const {
    ConfigProto config;
    EXPECT_TRUE(config.mutable_graph_options()
                    ->mutable_optimizer_options()
                    ->MergeFromString(fields_.SerializeAsString()));
    return config;
  }

  // Finds the runners of a session with this graph and configuration.
  Status Find(const Runners& manual_stages = {}) {
    SessionOptions options;
    options.config = Config();
    Session* created = nullptr;
    TF_RETURN_IF_ERROR(NewSession(options, &created));
    const std::unique_ptr<Session> session(created);
    GraphDef graph;
    graph_.get()->ToGraphDef(&graph);
    TF_RETURN_IF_ERROR(session->Create(graph));
    return FindRunnersOfSession(session.get(), manual_stages, &runners_);
  }

  void ExpectNode(const std::string& name, const std::string& op) {
    const Node* node = graph_.Find(name);
    ASSERT_NE(node, nullptr) << name;
    EXPECT_EQ(node->type_string(), op);
  }

  static std::string NodeOf(const std::string& tensor) {
    return tensor.substr(0, tensor.find(':'));
  }

  TestGraph graph_;
  OptimizerFields fields_;
  Runners runners_;
};

TEST_F(SessionRunnersTest, OptionsNameTheNodesThatThePassCreates) {
  graph_.Target("target", {graph_.Source("next")});
  graph_.Target("other", {graph_.Source("other_next")});
  ASSERT_EQ(Find(), OkStatus());
  const StagePlan plan(*graph_.get(), true, "");
  ASSERT_EQ(RewriteStages(plan, RewriteOptions(), graph_.get()), OkStatus());
  ASSERT_EQ(runners_.size(), 2);
  EXPECT_EQ(runners_[0].name(), "prefetch");
  EXPECT_EQ(runners_[1].name(), "prefetch_1");
  for (const PrefetchRunnerOptions& runner : runners_) {
    ASSERT_EQ(runner.fetch_ops_size(), 1);
    ExpectNode(runner.fetch_ops(0), "TensorBufferPut");
    ExpectNode(runner.cancel_op(), "TensorBufferCancel");
    ExpectNode(runner.resume_op(), "TensorBufferResume");
    ExpectNode(runner.close_op(), "TensorBufferClose");
    ExpectNode(NodeOf(runner.error_code_tensor()), "Const");
    ExpectNode(NodeOf(runner.error_message_tensor()), "Const");
    EXPECT_THAT(graph_.Inputs(runner.close_op()),
                ElementsAre(NodeOf(runner.error_code_tensor()),
                            NodeOf(runner.error_message_tensor())));
  }
}

TEST_F(SessionRunnersTest, OptionsHaveTheSettingsOfTheSession) {
  SmartStageOptions* options = fields_.mutable_smart_stage_options();
  options->set_name("ahead");
  options->set_num_threads(3);
  options->mutable_runner_options()->add_ignored_exceptions(error::DATA_LOSS);
  graph_.Target("target", {graph_.Source("next")});
  ASSERT_EQ(Find(), OkStatus());
  ASSERT_EQ(runners_.size(), 1);
  EXPECT_EQ(runners_[0].name(), "ahead");
  EXPECT_THAT(runners_[0].fetch_ops(),
              ElementsAre("ahead/TensorBufferPut", "ahead/TensorBufferPut",
                          "ahead/TensorBufferPut"));
  EXPECT_THAT(runners_[0].ignored_exceptions(), ElementsAre(error::DATA_LOSS));
}

TEST_F(SessionRunnersTest, OptionsOfAManualStageDoNotChange) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  graph_.Target("target", {graph_.Neg("a", take)});
  PrefetchRunnerOptions manual;
  manual.set_name("manual");
  manual.add_fetch_ops("manual/TensorBufferPut");
  ASSERT_EQ(Find({manual}), OkStatus());
  ASSERT_EQ(runners_.size(), 1);
  EXPECT_EQ(runners_[0].SerializeAsString(), manual.SerializeAsString());
}

TEST_F(SessionRunnersTest, ThePutOfAConditionalIsChecked) {
  Node* take = graph_.Stage("manual", {graph_.Source("next")});
  Node* five = graph_.Const("five", 5);
  for (Node* source : {take, graph_.Source("other")}) {
    const std::string name = strings::StrCat("cond_", source->type_string());
    TestConditional cond(name, graph_.Less(name + "/less", source, five),
                         &graph_);
    graph_.Target(
        name + "/target",
        {cond.Result(cond.In(false, source),
                     graph_.Neg(name + "/neg", cond.In(true, source)))});
  }
  PrefetchRunnerOptions manual;
  manual.set_name("manual");
  manual.set_restartable(true);
  manual.add_fetch_ops("manual/TensorBufferPut");
  ASSERT_EQ(Find({manual}), OkStatus());
  ASSERT_EQ(runners_.size(), 2);
  EXPECT_THAT(runners_[0].fetch_ops(),
              ElementsAre("manual/TensorBufferPut/done:0"));
  EXPECT_TRUE(runners_[0].restartable());
  EXPECT_THAT(runners_[1].fetch_ops(),
              ElementsAre("prefetch/TensorBufferPut/done:0"));
}

TEST_F(SessionRunnersTest, AStageWithAnInitialiserIsRestartable) {
  Node* staged = graph_.Iterator("staged_iterator");
  Node* iterator = graph_.Iterator("iterator");
  graph_.InitializeWithRange("initialize_staged", staged, 0, 9);
  graph_.InitializeWithRange("initialize", iterator, 0, 9);
  graph_.Stage("manual", {graph_.GetNext("staged_next", staged)});
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  graph_.Target("other", {graph_.Source("other_next")});
  PrefetchRunnerOptions manual;
  manual.set_name("manual");
  manual.add_fetch_ops("manual/TensorBufferPut");
  for (const bool smart_stage : {false, true}) {
    fields_.set_do_smart_stage(smart_stage);
    ASSERT_EQ(Find({manual}), OkStatus());
    ASSERT_EQ(runners_.size(), smart_stage ? 3 : 1);
    EXPECT_TRUE(runners_[0].restartable());
    if (!smart_stage) continue;
    EXPECT_TRUE(runners_[1].restartable());
    EXPECT_FALSE(runners_[2].restartable());
  }
}

TEST_F(SessionRunnersTest, AStageWhoseIteratorIsRestoredIsRestartable) {
  NodeBuilder position("position", "Placeholder");
  position.Attr("dtype", DT_VARIANT);
  Node* iterator = graph_.Iterator("iterator");
  NodeBuilder restore("restore", kRestoreIteratorOp);
  restore.Input(iterator).Input(graph_.Finalize(&position));
  graph_.Finalize(&restore);
  graph_.Target("target", {graph_.GetNext("next", iterator)});
  graph_.Target("other", {graph_.Source("other_next")});
  ASSERT_EQ(Find(), OkStatus());
  ASSERT_EQ(runners_.size(), 2);
  EXPECT_TRUE(runners_[0].restartable());
  EXPECT_FALSE(runners_[1].restartable());
}

TEST_F(SessionRunnersTest, ASessionWithoutStagesHasTheGivenRunners) {
  fields_.set_do_smart_stage(false);
  graph_.Target("target", {graph_.Source("next")});
  PrefetchRunnerOptions manual;
  manual.set_name("manual");
  ASSERT_EQ(Find({manual}), OkStatus());
  ASSERT_EQ(runners_.size(), 1);
  EXPECT_EQ(runners_[0].SerializeAsString(), manual.SerializeAsString());
}

TEST_F(SessionRunnersTest, AnInvalidSettingIsAnError) {
  fields_.mutable_smart_stage_options()->set_capacity(-2);
  EXPECT_TRUE(errors::IsInvalidArgument(Find()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
