// SPDX-License-Identifier: Apache-2.0
//
// Tests stage_subgraph_on_cpu in a session with a fake GPU.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu[] = "/device:GPU:0";

void Add(NodeDefBuilder builder, GraphDef* graph) {
  TF_CHECK_OK(builder.Finalize(graph->add_node()));
}

// Returns the graph of a region, which yields 0, 1, 2, ... as `number` and
// `integer`, which the step uses on the GPU, and as `string`, which it uses on
// the host.
GraphDef Region() {
  GraphDef graph;
  AddRangeSource(/*stop=*/1000, &graph);
  Add(NodeDefBuilder("number", "Cast")
          .Input("record", 0, DT_INT64)
          .Attr("SrcT", DT_INT64)
          .Attr("DstT", DT_FLOAT),
      &graph);
  Add(NodeDefBuilder("string", "AsString").Input("record", 0, DT_INT64),
      &graph);
  Add(NodeDefBuilder("integer", "Cast")
          .Input("record", 0, DT_INT64)
          .Attr("SrcT", DT_INT64)
          .Attr("DstT", DT_INT32),
      &graph);
  return graph;
}

// Adds the step's use of the records, on the GPU and on the host.
void AddStep(const NodeDefBuilder::NodeOut& number,
             const NodeDefBuilder::NodeOut& integer,
             const NodeDefBuilder::NodeOut& string, GraphDef* graph) {
  Add(NodeDefBuilder("tenfold", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{number})
          .Attr("scale", 10)
          .Device(kGpu)
          .Attr(kTargetAttr, true),
      graph);
  Add(NodeDefBuilder("integer_tenfold", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{integer})
          .Attr("scale", 10)
          .Device(kGpu)
          .Attr(kTargetAttr, true),
      graph);
  Add(NodeDefBuilder("length", "StringLength")
          .Input(string)
          .Attr(kTargetAttr, true),
      graph);
}

// Returns a graph for SmartStage. `pair`, the integer and the string, is placed
// on the GPU.
GraphDef SmartGraph() {
  GraphDef graph = Region();
  Add(NodeDefBuilder("pair", "IdentityN")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"integer", 0, DT_INT32},
                                                      {"string", 0, DT_STRING}})
          .Device(kGpu),
      &graph);
  Add(NodeDefBuilder("pair_length", "StringLength")
          .Input("pair", 1, DT_STRING)
          .Attr(kTargetAttr, true),
      &graph);
  AddStep({"number", 0, DT_FLOAT}, {"pair", 0, DT_INT32},
          {"string", 0, DT_STRING}, &graph);
  return graph;
}

// Returns a graph with a stage as tf.staged makes it. Its last tensor is not
// used.
GraphDef ManualGraph(const StageTestGraph& stage) {
  GraphDef graph = Region();
  stage.AddTo(&graph, "record");
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.op() == kPutOp) {
      node.clear_input();
      for (const char* input : {"number", "string", "integer", "record"}) {
        node.add_input(input);
      }
    }
    if (node.op() == kPutOp || node.op() == kTakeOp) {
      SetAttrValue(DataTypeVector{DT_FLOAT, DT_STRING, DT_INT32, DT_INT64},
                   &(*node.mutable_attr())["dtypes"]);
    }
  }
  const std::string take = stage.Node(kTakeOp);
  AddStep({take, 0, DT_FLOAT}, {take, 2, DT_INT32}, {take, 1, DT_STRING},
          &graph);
  return graph;
}

SessionOptions OnCpuOptions(bool smart_stage) {
  OptimizerFields fields;
  fields.set_do_smart_stage(smart_stage);
  fields.set_stage_subgraph_on_cpu(true);
  fields.mutable_smart_stage_options()->set_capacity(3);
  SessionOptions options;
  OptimizerOptions* optimizer =
      options.config.mutable_graph_options()->mutable_optimizer_options();
  TF_CHECK_OK(optimizer->MergeFromString(fields.SerializeAsString())
                  ? OkStatus()
                  : errors::Internal("unreadable"));
  return options;
}

class StageOnCpuSessionTest : public ::testing::Test {
 protected:
  StageOnCpuSessionTest()
      : StageOnCpuSessionTest(OnCpuOptions(/*smart_stage=*/true),
                              SmartGraph()) {}

  StageOnCpuSessionTest(const SessionOptions& options, const GraphDef& graph) {
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }

  ~StageOnCpuSessionTest() override { TF_CHECK_OK(session_->Close()); }

  void StartStage() {
    std::vector<PrefetchRunnerOptions> runners;
    TF_CHECK_OK(FindRunnersOfSession(session_.get(), {}, &runners));
    ASSERT_EQ(runners.size(), 1);
    StartRunner(runners[0]);
  }

  void StartRunner(const PrefetchRunnerOptions& options) {
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  // Each record has two tensors for the GPU. The GPU waits for no copy but that
  // of a record which a step uses before it is over.
  void ExpectOneCopyForEachRecord(const std::function<void()>& start) {
    const FakeGpuCounts& counts = FakeGpu::Of(session_.get())->counts();
    const int64_t copies = counts.host_to_device.count;
    const int64_t compute_waits = counts.compute_waits;
    start();
    constexpr int kSteps = 50;
    for (int i = 0; i < kSteps; ++i) {
      TF_CHECK_OK(
          session_->Run({}, {}, {"tenfold", "integer_tenfold"}, nullptr));
    }
    runner_->Stop();
    // Stop may have cancelled a run that had copied its record.
    const int64_t records = runner_->GetStats().records;
    EXPECT_GE(counts.host_to_device.count - copies, records);
    EXPECT_LE(counts.host_to_device.count - copies, records + 1);
    EXPECT_LE(counts.compute_waits - compute_waits, kSteps);
  }

  // Runs the session once and returns the graph of each device type.
  std::map<std::string, GraphDef> GraphsOf(
      const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets) {
    RunOptions run_options;
    run_options.set_output_partition_graphs(true);
    RunMetadata metadata;
    std::vector<Tensor> outputs;
    TF_CHECK_OK(
        session_->Run(run_options, {}, fetches, targets, &outputs, &metadata));
    std::map<std::string, GraphDef> graphs;
    for (const GraphDef& graph : metadata.partition_graphs()) {
      const bool gpu = graph.node(0).device().find("GPU") != std::string::npos;
      graphs[gpu ? "GPU" : "CPU"] = graph;
    }
    return graphs;
  }

  static bool Has(const GraphDef& graph, const std::string& op) {
    for (const NodeDef& node : graph.node()) {
      if (node.op() == op) return true;
    }
    return false;
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

TEST_F(StageOnCpuSessionTest, RecordsArriveOnBothDevices) {
  StartStage();
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(
        session_->Run({}, {"tenfold:0", "string:0", "length:0"}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<float>()(), 10 * i);
    EXPECT_EQ(outputs[1].scalar<tstring>()(), std::to_string(i));
    EXPECT_EQ(outputs[2].scalar<int32>()(), i < 10 ? 1 : 2);
  }
}

// TensorFlow keeps most 32-bit integers, and all strings, in host memory.
TEST_F(StageOnCpuSessionTest, AStandInOnTheGpuForwardsIntegersAndStrings) {
  StartStage();
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run(
        {}, {"integer_tenfold:0", "pair:0", "pair:1", "pair_length:0"}, {},
        &outputs));
    EXPECT_EQ(outputs[0].scalar<int32>()(), 10 * i);
    EXPECT_EQ(outputs[1].scalar<int32>()(), i);
    EXPECT_EQ(outputs[2].scalar<tstring>()(), std::to_string(i));
    EXPECT_EQ(outputs[3].scalar<int32>()(), i < 10 ? 1 : 2);
  }
}

class GrowingOnCpuSessionTest : public StageOnCpuSessionTest {
 protected:
  GrowingOnCpuSessionTest()
      : StageOnCpuSessionTest(GrowingOptions(), SmartGraph()) {}

 private:
  static SessionOptions GrowingOptions() {
    SessionOptions options = OnCpuOptions(/*smart_stage=*/true);
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    return options;
  }
};

// The records are on the GPU by then, apart from what the step uses on the
// host.
TEST_F(GrowingOnCpuSessionTest, ALateSourceTakesRecordsOfTheStage) {
  StartStage();
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session_->Run({}, {"tenfold:0"}, {}, &outputs));
  GraphDef later;
  Add(NodeDefBuilder("late", "IteratorGetNext")
          .Input("iterator", 0, DT_RESOURCE)
          .Attr("output_types", DataTypeVector{DT_INT64})
          .Attr("output_shapes",
                std::vector<PartialTensorShape>{PartialTensorShape({})})
          .Device("/device:CPU:0"),
      &later);
  Add(NodeDefBuilder("late_number", "Cast")
          .Input("late", 0, DT_INT64)
          .Attr("SrcT", DT_INT64)
          .Attr("DstT", DT_FLOAT),
      &later);
  Add(NodeDefBuilder("late_tenfold", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{
              {"late_number", 0, DT_FLOAT}})
          .Attr("scale", 10)
          .Device(kGpu),
      &later);
  TF_CHECK_OK(session_->Extend(later));
  for (int i = 1; i < 20; i += 2) {
    TF_CHECK_OK(session_->Run({}, {"late:0", "late_tenfold:0"}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), i);
    EXPECT_EQ(outputs[1].scalar<float>()(), 10 * i);
    TF_CHECK_OK(session_->Run({}, {"tenfold:0", "string:0"}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<float>()(), 10 * (i + 1));
    EXPECT_EQ(outputs[1].scalar<tstring>()(), std::to_string(i + 1));
  }
}

TEST_F(StageOnCpuSessionTest, TheStepTakesItsTensorsOnTheGpu) {
  StartStage();
  const auto graphs = GraphsOf({}, {"tenfold"});
  ASSERT_EQ(graphs.count("GPU"), 1);
  EXPECT_TRUE(Has(graphs.at("GPU"), "TensorBufferTake"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "_Recv"));
}

TEST_F(StageOnCpuSessionTest, TheStagedRunComputesOnTheCpuAndCopies) {
  const auto graphs = GraphsOf({}, {"prefetch/TensorBufferPut"});
  EXPECT_TRUE(Has(graphs.at("CPU"), "Cast"));
  EXPECT_TRUE(Has(graphs.at("CPU"), "AsString"));
  EXPECT_TRUE(Has(graphs.at("CPU"), "_Send"));
  EXPECT_TRUE(Has(graphs.at("GPU"), "TensorBufferPut"));
  // The Put receives its inputs on the host, and copies them.
  EXPECT_TRUE(Has(graphs.at("GPU"), "_HostRecv"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "_Recv"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "Cast"));
}

TEST_F(StageOnCpuSessionTest, ARecordIsCopiedToTheGpuAtOnce) {
  ExpectOneCopyForEachRecord([this]() { StartStage(); });
}

// Returns options that say whether stages run on the CPU, or say nothing.
SessionOptions OptionsThatSay(std::optional<bool> on_cpu = std::nullopt) {
  OptimizerFields fields;
  fields.set_do_smart_stage(true);
  if (on_cpu.has_value()) fields.set_stage_subgraph_on_cpu(*on_cpu);
  SessionOptions options;
  CHECK(options.config.mutable_graph_options()
            ->mutable_optimizer_options()
            ->MergeFromString(fields.SerializeAsString()));
  return options;
}

// Returns a graph for SmartStage whose region asks for no device.
GraphDef GraphWithoutDevices() {
  GraphDef graph = Region();
  AddStep({"number", 0, DT_FLOAT}, {"integer", 0, DT_INT32},
          {"string", 0, DT_STRING}, &graph);
  return graph;
}

// Returns a graph for SmartStage with `linear` in the region, on the GPU.
GraphDef GraphWithGpuInRegion() {
  GraphDef graph = Region();
  Add(NodeDefBuilder("linear", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"number", 0, DT_FLOAT}})
          .Device(kGpu),
      &graph);
  AddStep({"linear", 0, DT_FLOAT}, {"integer", 0, DT_INT32},
          {"string", 0, DT_STRING}, &graph);
  return graph;
}

class DefaultSessionTest : public StageOnCpuSessionTest {
 protected:
  DefaultSessionTest()
      : StageOnCpuSessionTest(OptionsThatSay(), GraphWithoutDevices()) {}
};

TEST_F(DefaultSessionTest, ARegionThatAsksForNoGpuIsOnTheCpuAndDelivers) {
  StartStage();
  const auto graphs = GraphsOf({}, {"tenfold"});
  ASSERT_EQ(graphs.count("GPU"), 1);
  EXPECT_TRUE(Has(graphs.at("GPU"), "TensorBufferTake"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "_Recv"));
}

class NotOnCpuSessionTest : public StageOnCpuSessionTest {
 protected:
  NotOnCpuSessionTest()
      : StageOnCpuSessionTest(OptionsThatSay(/*on_cpu=*/false),
                              GraphWithoutDevices()) {}
};

TEST_F(NotOnCpuSessionTest, TensorFlowCopiesTheRecordsInTheStep) {
  StartStage();
  const auto graphs = GraphsOf({}, {"tenfold"});
  ASSERT_EQ(graphs.count("GPU"), 1);
  EXPECT_FALSE(Has(graphs.at("GPU"), "TensorBufferTake"));
  EXPECT_TRUE(Has(graphs.at("GPU"), "_Recv"));
}

class RegionOnGpuSessionTest : public StageOnCpuSessionTest {
 protected:
  RegionOnGpuSessionTest()
      : StageOnCpuSessionTest(OptionsThatSay(), GraphWithGpuInRegion()) {}
};

TEST_F(RegionOnGpuSessionTest, ARegionThatAsksForAGpuStaysThere) {
  const auto graphs = GraphsOf({}, {"prefetch/TensorBufferPut"});
  ASSERT_EQ(graphs.count("GPU"), 1);
  EXPECT_TRUE(Has(graphs.at("GPU"), "StagingTestLinear"));
}

// Returns a graph for SmartStage in which the step uses both elements of an
// iterator on the GPU.
GraphDef GraphWithPairs() {
  const DataTypeVector types = {DT_INT64, DT_INT64};
  const std::vector<PartialTensorShape> shapes(2, PartialTensorShape({}));
  GraphDef graph;
  AddRangeSource(/*stop=*/1000, &graph);
  const auto add = [&](NodeDefBuilder builder) {
    Add(builder.Device("/device:CPU:0")
            .Attr("output_types", types)
            .Attr("output_shapes", shapes),
        &graph);
  };
  add(NodeDefBuilder("pairs", "ZipDataset")
          .Input(std::vector<NodeDefBuilder::NodeOut>(
              2, {"dataset", 0, DT_VARIANT})));
  add(NodeDefBuilder("pair_iterator", "IteratorV2")
          .Attr("shared_name", "pair_iterator")
          .Attr("container", ""));
  add(NodeDefBuilder("pair", "IteratorGetNext")
          .Input("pair_iterator", 0, DT_RESOURCE));
  Add(NodeDefBuilder("pair_initializer", "MakeIterator")
          .Input("pairs", 0, DT_VARIANT)
          .Input("pair_iterator", 0, DT_RESOURCE),
      &graph);
  Add(NodeDefBuilder("tenfold_sum", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"pair", 0, DT_INT64},
                                                      {"pair", 1, DT_INT64}})
          .Attr("scale", 10)
          .Device(kGpu)
          .Attr(kTargetAttr, true),
      &graph);
  return graph;
}

class ExtendedStageOnCpuTest : public StageOnCpuSessionTest {
 protected:
  ExtendedStageOnCpuTest()
      : StageOnCpuSessionTest(ExtendableOptions(), GraphWithPairs()) {
    TF_CHECK_OK(session_->Run({}, {}, {"pair_initializer"}, nullptr));
  }

  // As Python's sessions are.
  static SessionOptions ExtendableOptions() {
    SessionOptions options = OnCpuOptions(/*smart_stage=*/true);
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    return options;
  }

  Status Step(int64_t* sum) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run({}, {"tenfold_sum"}, {}, &outputs));
    *sum = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }
};

// The stand-in of `pair`, which has its name, is on the GPU. TensorFlow keeps
// the devices of stateful nodes, by name, when a graph is extended.
TEST_F(ExtendedStageOnCpuTest, TheSourceStaysOnTheCpu) {
  StartStage();
  int64_t sum = 0;
  ASSERT_EQ(Step(&sum), OkStatus());
  EXPECT_EQ(sum, 0);
  GraphDef more;
  Add(NodeDefBuilder("more", "NoOp"), &more);
  ASSERT_EQ(session_->Extend(more), OkStatus());
  ASSERT_EQ(session_->Run({}, {}, {"more"}, nullptr), OkStatus());
  ASSERT_EQ(Step(&sum), OkStatus());
  EXPECT_EQ(sum, 20);
}

// A stage of tf.staged, without SmartStage.
class ManualStageOnCpuTest : public StageOnCpuSessionTest {
 protected:
  ManualStageOnCpuTest() : ManualStageOnCpuTest({"prefetch", 3}) {}

  explicit ManualStageOnCpuTest(const StageTestGraph& stage)
      : StageOnCpuSessionTest(OnCpuOptions(/*smart_stage=*/false),
                              ManualGraph(stage)) {
    options_ = RunnerOptionsOf(stage);
    options_.add_fetch_ops(stage.Node(kPutOp));
  }

  PrefetchRunnerOptions options_;
};

TEST_F(ManualStageOnCpuTest, RecordsArriveOnBothDevices) {
  StartRunner(options_);
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({},
                              {"tenfold:0", "integer_tenfold:0", "length:0",
                               "prefetch/TensorBufferTake:3"},
                              {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<float>()(), 10 * i);
    EXPECT_EQ(outputs[1].scalar<int32>()(), 10 * i);
    EXPECT_EQ(outputs[2].scalar<int32>()(), i < 10 ? 1 : 2);
    EXPECT_EQ(outputs[3].scalar<int64_t>()(), i);
  }
}

TEST_F(ManualStageOnCpuTest, TheStepTakesItsTensorsOnTheGpu) {
  StartRunner(options_);
  const auto graphs = GraphsOf({}, {"tenfold"});
  ASSERT_EQ(graphs.count("GPU"), 1);
  EXPECT_TRUE(Has(graphs.at("GPU"), "TensorBufferTake"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "_Recv"));
}

TEST_F(ManualStageOnCpuTest, ARecordIsCopiedToTheGpuAtOnce) {
  ExpectOneCopyForEachRecord([this]() { StartRunner(options_); });
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
