// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/report/stage_report.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class StageReportTest : public ::testing::Test {
 protected:
  void Add(NodeDefBuilder builder) {
    TF_CHECK_OK(builder.Finalize(def_.add_node()));
  }

  // Adds iterator --> next, an int64 of shape [?].
  void AddIterator() {
    const std::vector<PartialTensorShape> shapes = {PartialTensorShape({-1})};
    const auto with_output = [&shapes](NodeDefBuilder builder) {
      return builder.Attr("output_types", DataTypeVector{DT_INT64})
          .Attr("output_shapes", shapes);
    };
    Add(with_output(NodeDefBuilder("iterator", "IteratorV2")
                        .Attr("shared_name", "")
                        .Attr("container", "")));
    Add(with_output(NodeDefBuilder("next", "IteratorGetNext")
                        .Input("iterator", 0, DT_RESOURCE)));
  }

  // Adds variable --> read, an int64, and sum, which adds it to `input`.
  void AddStep(const std::string& input) {
    Add(NodeDefBuilder("variable", "VariableV2")
            .Attr("shape", TensorShape({}))
            .Attr("dtype", DT_INT64));
    Add(NodeDefBuilder("read", "Identity")
            .Input("variable", 0, DT_INT64_REF)
            .Attr("T", DT_INT64));
    Add(NodeDefBuilder("sum", "AddV2")
            .Input(input, 0, DT_INT64)
            .Input("read", 0, DT_INT64));
  }

  void AddIdentity(const std::string& name, const std::string& input) {
    Add(NodeDefBuilder(name, "Identity").Input(input, 0, DT_INT64));
  }

  StageReport Report(const std::string& name = "") {
    Graph graph(OpRegistry::Global());
    TF_CHECK_OK(
        ConvertGraphDefToGraph(GraphConstructorOptions(), def_, &graph));
    ReportOptions options;
    options.name = name;
    StageReport report;
    TF_CHECK_OK(ReportStages(graph, options, &report));
    return report;
  }

  static std::map<std::string, int> Sides(const StageReport& report) {
    std::map<std::string, int> sides;
    for (const auto& node : report.nodes) sides[node.name] = node.side;
    return sides;
  }

  GraphDef def_;
};

TEST_F(StageReportTest, ReportsAStageItsRecordAndItsFirstNodeOutside) {
  AddIterator();
  AddIdentity("key", "next");
  AddStep("key");
  const StageReport report = Report("ahead");
  ASSERT_EQ(report.stages.size(), 1);
  const StageReport::Stage& stage = report.stages[0];
  EXPECT_EQ(stage.name, "ahead");
  EXPECT_FALSE(stage.by_hand);
  EXPECT_THAT(stage.sources, ElementsAre("next"));
  EXPECT_THAT(stage.nodes, ElementsAre("next", "key"));
  ASSERT_EQ(stage.boundary.size(), 1);
  EXPECT_EQ(stage.boundary[0].name, "key:0");
  EXPECT_EQ(stage.boundary[0].dtype, DT_INT64);
  EXPECT_EQ(stage.boundary[0].shape.DebugString(), "[?]");
  ASSERT_EQ(stage.elements.size(), 1);
  EXPECT_EQ(stage.elements[0].name, "next:0");
  EXPECT_EQ(stage.elements[0].shape.DebugString(), "[?]");
  ASSERT_EQ(stage.outside.size(), 1);
  EXPECT_EQ(stage.outside[0].name, "sum");
  EXPECT_EQ(stage.outside[0].why,
            "depends on variable 'variable' (VariableV2)");
  EXPECT_THAT(report.unstaged_sources, IsEmpty());
}

TEST_F(StageReportTest, ReportsTheSideOfEachNode) {
  AddIterator();
  AddStep("next");
  const StageReport report = Report();
  EXPECT_THAT(Sides(report),
              UnorderedElementsAre(Pair("iterator", StageReport::kOnce),
                                   Pair("next", 0),
                                   Pair("variable", StageReport::kStep),
                                   Pair("read", StageReport::kStep),
                                   Pair("sum", StageReport::kStep)));
  EXPECT_EQ(report.edges.size(), 4);
}

TEST_F(StageReportTest, ReportsWhyEachNodeIsInTheStep) {
  AddIterator();
  AddStep("next");
  const StageReport report = Report();
  std::map<std::string, const StageReport::GraphNode*> nodes;
  for (const auto& node : report.nodes) nodes[node.name] = &node;
  EXPECT_EQ(nodes["next"]->why, -1);
  const StageReport::Why& variable = report.whys[nodes["variable"]->why];
  EXPECT_EQ(variable.about, StageReport::Why::kItself);
  EXPECT_THAT(variable.advice, ::testing::HasSubstr("tf.staging.allow_stale"));
  EXPECT_TRUE(nodes["variable"]->step_only);
  const StageReport::Why& sum = report.whys[nodes["sum"]->why];
  EXPECT_EQ(sum.text, "depends on variable 'variable' (VariableV2)");
  EXPECT_EQ(report.nodes[sum.about].name, "variable");
  EXPECT_EQ(nodes["read"]->why, nodes["sum"]->why);
  EXPECT_FALSE(nodes["sum"]->step_only);
}

TEST_F(StageReportTest, CountsReasons) {
  AddIterator();
  AddStep("next");
  const StageReport report = Report();
  ASSERT_EQ(report.reasons.size(), 2);
  EXPECT_EQ(report.reasons[0].nodes, 2);
  EXPECT_EQ(report.reasons[0].example.name, "read");
  EXPECT_EQ(report.reasons[1].nodes, 1);
}

TEST_F(StageReportTest, CountsNodesThatDependOnDifferentNodesTogether) {
  AddIterator();
  AddStep("next");
  Add(NodeDefBuilder("other", "VariableV2")
          .Attr("shape", TensorShape({}))
          .Attr("dtype", DT_INT64));
  Add(NodeDefBuilder("read_other", "Identity")
          .Input("other", 0, DT_INT64_REF)
          .Attr("T", DT_INT64));
  const StageReport report = Report();
  ASSERT_EQ(report.reasons.size(), 2);
  EXPECT_EQ(report.reasons[0].nodes, 3);
  EXPECT_EQ(report.reasons[0].example.why,
            "depends on variable 'variable' (VariableV2)");
  EXPECT_THAT(report.reasons[0].about, ElementsAre("variable", "other"));
  EXPECT_EQ(report.reasons[1].nodes, 2);
  EXPECT_EQ(report.reasons[1].example.name, "variable");
  EXPECT_THAT(report.reasons[1].about, IsEmpty());
}

TEST_F(StageReportTest, ReportsWhyASourceIsNotStaged) {
  AddIterator();
  const StageReport report = Report();
  EXPECT_THAT(report.stages, IsEmpty());
  ASSERT_EQ(report.unstaged_sources.size(), 1);
  EXPECT_EQ(report.unstaged_sources[0].why,
            "is computed only if a run asks for it");
}

TEST_F(StageReportTest, AManualStageHasTheNodesBeforeItsPutAndItsRegion) {
  AddIterator();
  AddIdentity("before", "next");
  StageTestGraph().AddTo(&def_, "before");
  AddIdentity("after", "prefetch/TensorBufferTake");
  AddStep("after");
  const StageReport report = Report();
  ASSERT_EQ(report.stages.size(), 1);
  const StageReport::Stage& stage = report.stages[0];
  EXPECT_TRUE(stage.by_hand);
  EXPECT_THAT(stage.sources, ElementsAre("prefetch/TensorBufferTake"));
  EXPECT_THAT(stage.nodes, ElementsAre("after"));
  EXPECT_THAT(report.unstaged_sources, IsEmpty());
  std::map<std::string, int> sides = Sides(report);
  EXPECT_EQ(sides["next"], 0);
  EXPECT_EQ(sides["before"], 0);
  EXPECT_EQ(sides["prefetch/TensorBufferPut"], 0);
  EXPECT_EQ(sides["after"], 0);
  EXPECT_EQ(sides["sum"], StageReport::kStep);
  EXPECT_EQ(sides["prefetch/TensorBufferResume"], StageReport::kControl);
}

TEST_F(StageReportTest, AVariableBeforeAPutIsInNoStage) {
  AddIterator();
  AddStep("next");
  StageTestGraph().AddTo(&def_, "sum");
  const StageReport report = Report();
  std::map<std::string, int> sides = Sides(report);
  EXPECT_EQ(sides["variable"], StageReport::kStep);
  EXPECT_EQ(sides["read"], 0);
  EXPECT_EQ(sides["sum"], 0);
}

TEST_F(StageReportTest, EachStageOfAChainHasItsOwnNodes) {
  AddIterator();
  // The second stage of the chain is first by name.
  StageTestGraph first;
  first.name = "z";
  first.AddTo(&def_, "next");
  AddIdentity("between", "z/TensorBufferTake");
  StageTestGraph second;
  second.name = "a";
  second.AddTo(&def_, "between");
  AddStep("a/TensorBufferTake");
  const StageReport report = Report();
  ASSERT_EQ(report.stages.size(), 2);
  EXPECT_EQ(report.stages[0].name, "a");
  std::map<std::string, int> sides = Sides(report);
  EXPECT_EQ(sides["between"], 0);
  EXPECT_EQ(sides["z/TensorBufferTake"], 1);
  EXPECT_EQ(sides["z/TensorBufferPut"], 1);
  EXPECT_EQ(sides["next"], 1);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
