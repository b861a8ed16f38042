// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/runners_node.h"

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

  // Opens a session with this graph and configuration.
  Status Open(std::unique_ptr<Session>* session) {
    SessionOptions options;
    options.config = Config();
    Session* created = nullptr;
    TF_RETURN_IF_ERROR(NewSession(options, &created));
    session->reset(created);
    GraphDef graph;
    graph_.get()->ToGraphDef(&graph);
    return created->Create(graph);
  }

  // Finds the runners of such a session.
  Status Find(const Runners& manual_stages = {}) {
    std::unique_ptr<Session> session;
    TF_RETURN_IF_ERROR(Open(&session));
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
    ExpectNode(NodeOf(runner.stats_tensor()), "TensorBufferStats");
    ExpectNode(NodeOf(runner.discard_tensor()), "TensorBufferDiscard");
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
  manual.set_discard_tensor("manual/TensorBufferDiscard:0");
  manual.add_fetch_ops("manual/TensorBufferPut");
  ASSERT_EQ(Find({manual}), OkStatus());
  ASSERT_EQ(runners_.size(), 2);
  EXPECT_THAT(runners_[0].fetch_ops(),
              ElementsAre("manual/TensorBufferPut/done:0"));
  EXPECT_EQ(runners_[0].discard_tensor(), "manual/TensorBufferDiscard:0");
  EXPECT_THAT(runners_[1].fetch_ops(),
              ElementsAre("prefetch/TensorBufferPut/done:0"));
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

TEST_F(SessionRunnersTest, DiscardRecordsDropsThoseOfEachStage) {
  for (const std::string name : {"first", "second"}) {
    Node* iterator = graph_.Iterator(name + "_iterator");
    graph_.InitializeWithRange(name + "_initialize", iterator, 0, 5);
    graph_.Target(name + "_target", {graph_.GetNext(name, iterator)});
  }
  fields_.mutable_smart_stage_options()->set_capacity(3);
  std::unique_ptr<Session> session;
  ASSERT_EQ(Open(&session), OkStatus());
  ASSERT_EQ(
      session->Run({}, {}, {"first_initialize", "second_initialize"}, nullptr),
      OkStatus());
  ASSERT_EQ(FindRunnersOfSession(session.get(), {}, &runners_), OkStatus());
  ASSERT_EQ(runners_.size(), 2);
  for (int i = 0; i < 3; ++i) {
    const PrefetchRunnerOptions& runner = runners_[i == 0 ? 0 : 1];
    ASSERT_EQ(session->Run({}, {}, {runner.fetch_ops(0)}, nullptr), OkStatus());
  }
  const std::vector<std::string> tensors = {runners_[0].discard_tensor(),
                                            runners_[1].discard_tensor()};
  std::vector<int64_t> discarded;
  ASSERT_EQ(FetchCounts(session.get(), tensors, &discarded), OkStatus());
  EXPECT_THAT(discarded, ElementsAre(1, 2));
  discarded.clear();
  ASSERT_EQ(FetchCounts(session.get(), tensors, &discarded), OkStatus());
  EXPECT_THAT(discarded, ElementsAre(0, 0));
  EXPECT_TRUE(errors::IsInvalidArgument(
      FetchCounts(session.get(), {runners_[0].stats_tensor()}, &discarded)));
}

TEST_F(SessionRunnersTest, AnInvalidSettingIsAnError) {
  fields_.mutable_smart_stage_options()->set_capacity(-2);
  EXPECT_TRUE(errors::IsInvalidArgument(Find()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
