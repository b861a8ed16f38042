// SPDX-License-Identifier: Apache-2.0
//
// Tests stage_subgraph_on_cpu in a session with a fake GPU.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/session/session_runners.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kGpu[] = "/device:GPU:0";

void Add(NodeDefBuilder builder, GraphDef* graph) {
  TF_CHECK_OK(builder.Finalize(graph->add_node()));
}

void AddConst(const std::string& name, int64_t value, GraphDef* graph) {
  Add(NodeDefBuilder(name, "Const")
          .Attr("dtype", DT_INT64)
          .Attr("value", Tensor(value)),
      graph);
}

// Returns a graph whose records are 0, 1, 2, ... Each record is a number, which
// the step uses on the GPU, and a string, which it uses on the host.
// `pair`, an integer and the string, is placed on the GPU.
GraphDef TestGraph() {
  const std::vector<DataType> types = {DT_INT64};
  const std::vector<PartialTensorShape> shapes = {PartialTensorShape({})};
  GraphDef graph;
  AddConst("start", 0, &graph);
  AddConst("stop", 1000, &graph);
  AddConst("step", 1, &graph);
  Add(NodeDefBuilder("dataset", "RangeDataset")
          .Input("start", 0, DT_INT64)
          .Input("stop", 0, DT_INT64)
          .Input("step", 0, DT_INT64)
          .Attr("output_types", types)
          .Attr("output_shapes", shapes),
      &graph);
  Add(NodeDefBuilder("iterator", "IteratorV2")
          .Attr("shared_name", "iterator")
          .Attr("container", "")
          .Attr("output_types", types)
          .Attr("output_shapes", shapes),
      &graph);
  Add(NodeDefBuilder("initializer", "MakeIterator")
          .Input("dataset", 0, DT_VARIANT)
          .Input("iterator", 0, DT_RESOURCE),
      &graph);
  Add(NodeDefBuilder("record", "IteratorGetNext")
          .Input("iterator", 0, DT_RESOURCE)
          .Attr("output_types", types)
          .Attr("output_shapes", shapes),
      &graph);
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
  Add(NodeDefBuilder("pair", "IdentityN")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"integer", 0, DT_INT32},
                                                      {"string", 0, DT_STRING}})
          .Device(kGpu),
      &graph);
  Add(NodeDefBuilder("integer_tenfold", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"pair", 0, DT_INT32}})
          .Attr("scale", 10)
          .Device(kGpu)
          .Attr(kTargetAttr, true),
      &graph);
  Add(NodeDefBuilder("pair_length", "StringLength")
          .Input("pair", 1, DT_STRING)
          .Attr(kTargetAttr, true),
      &graph);
  Add(NodeDefBuilder("tenfold", "StagingTestLinear")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"number", 0, DT_FLOAT}})
          .Attr("scale", 10)
          .Device(kGpu)
          .Attr(kTargetAttr, true),
      &graph);
  Add(NodeDefBuilder("length", "StringLength")
          .Input("string", 0, DT_STRING)
          .Attr(kTargetAttr, true),
      &graph);
  return graph;
}

SessionOptions OnCpuOptions() {
  OptimizerFields fields;
  fields.set_do_smart_stage(true);
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
  StageOnCpuSessionTest() : options_(OnCpuOptions()) {
    session_.reset(NewSession(options_));
    TF_CHECK_OK(session_->Create(TestGraph()));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }

  ~StageOnCpuSessionTest() override { TF_CHECK_OK(session_->Close()); }

  void StartStage() {
    std::vector<PrefetchRunnerOptions> runners;
    TF_CHECK_OK(FindRunnersOfSession(session_.get(), {}, &runners));
    ASSERT_EQ(runners.size(), 1);
    TF_CHECK_OK(PrefetchRunner::Create(session_, runners[0], &runner_));
    TF_CHECK_OK(runner_->Start());
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

  SessionOptions options_;
  std::shared_ptr<Session> session_;
  std::unique_ptr<PrefetchRunner> runner_;
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
  EXPECT_TRUE(Has(graphs.at("CPU"), "TensorBufferBegin"));
  EXPECT_TRUE(Has(graphs.at("GPU"), "TensorBufferPut"));
  // The Put receives its inputs on the host, and copies them.
  EXPECT_TRUE(Has(graphs.at("GPU"), "_HostRecv"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "_Recv"));
  EXPECT_FALSE(Has(graphs.at("GPU"), "Cast"));
}

// A record has two tensors for the GPU, `number` and `integer`.
TEST_F(StageOnCpuSessionTest, ARecordIsCopiedToTheGpuAtOnce) {
  const FakeGpuCounts& counts = FakeGpu::Of(session_.get())->counts();
  const int64_t copies = counts.host_to_device.count;
  const int64_t compute_waits = counts.compute_waits;
  StartStage();
  for (int i = 0; i < 50; ++i) {
    TF_CHECK_OK(session_->Run({}, {}, {"tenfold", "integer_tenfold"}, nullptr));
  }
  runner_->Stop();
  // Stop may have cancelled a run that had copied its record.
  const int64_t records = runner_->GetStats().records;
  EXPECT_GE(counts.host_to_device.count - copies, records);
  EXPECT_LE(counts.host_to_device.count - copies, records + 1);
  EXPECT_EQ(counts.compute_waits, compute_waits);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
