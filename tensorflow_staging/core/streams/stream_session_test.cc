// SPDX-License-Identifier: Apache-2.0
//
// Tests sessions whose ops and stages run on several streams of fake GPUs,
// whose kernels and copies are late at random.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::HasSubstr;

using Outs = std::vector<NodeDefBuilder::NodeOut>;

constexpr char kCpu[] = "/device:CPU:0";
constexpr char kGpu[] = "/device:GPU:0";

// The product of two scalars on a GPU.
REGISTER_OP("StagingTestProduct")
    .Input("a: float")
    .Input("b: float")
    .Output("product: float");

class ProductOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape(), &output));
    LaunchOnFakeGpu(ctx, [a = ctx->input(0).flat<float>().data(),
                          b = ctx->input(1).flat<float>().data(),
                          product = output->flat<float>().data()] {
      *product = AcrossBorder(AcrossBorder(*a) * AcrossBorder(*b));
    });
  }
};
REGISTER_KERNEL_BUILDER(Name("StagingTestProduct").Device(DEVICE_GPU),
                        ProductOp);

// Runs one session on a GPU with two streams.
class StreamSessionTest : public ::testing::Test {
 protected:
  StreamSessionTest() {
    SetFakeGpuDelay(absl::Microseconds(100));
    fields_.set_use_multi_stream(RewriterConfig::ON);
    fields_.mutable_multi_stream_opts()->set_multi_stream_num(2);
  }

  ~StreamSessionTest() override {
    runner_.reset();
    if (session_ != nullptr) TF_CHECK_OK(session_->Close());
    SetFakeGpuDelay(absl::ZeroDuration());
    SetFakeGpuCount(1);
  }

  void Add(NodeDefBuilder builder) { StageTestGraph::Add(builder, &graph_); }

  // Adds scale * (sum of `inputs`) + offset, on the GPU, in tf.stream(`stream`)
  // unless that is -1.
  void AddLinear(const std::string& name, const Outs& inputs, int scale,
                 int offset, int stream) {
    NodeDefBuilder builder(name, "StagingTestLinear");
    builder.Input(inputs)
        .Attr("scale", scale)
        .Attr("offset", offset)
        .Device(kGpu);
    if (stream >= 0) builder.Attr(kStreamAttr, stream);
    Add(builder);
  }

  // Adds a region on the GPU: x = 3 * record + 1, y = 2 * (record + x).
  void AddRegion() {
    AddRangeSource(/*stop=*/1000000, &graph_);
    AddLinear("x", {{"record", 0, DT_INT64}}, 3, 1, /*stream=*/-1);
    AddLinear("y", {{"record", 0, DT_INT64}, {"x", 0, DT_INT64}}, 2, 0,
              /*stream=*/-1);
  }

  // Adds a stage as tf.staged creates it. Its records are (record, y), on the
  // GPU, and its region asks for stream 1.
  void AddStage(const StageTestGraph& stage) {
    const auto add = [&](NodeDefBuilder builder) {
      Add(builder
              .Attr(kColocationAttrName,
                    std::vector<std::string>{absl::StrCat(
                        kColocationGroupPrefix, stage.Node(kPutOp))})
              .Device(kGpu));
    };
    Add(stage.Op(kPutOp)
            .Input(Outs{{"record", 0, DT_INT64}, {"y", 0, DT_INT64}})
            .Attr(kTimeoutMillisAttr, 0)
            .Attr(kStreamAttr, 1)
            .Device(kGpu));
    add(stage.Op(kTakeOp).Attr(kDtypesAttr,
                               DataTypeVector{DT_INT64, DT_INT64}));
    add(stage.Op(kCancelOp));
    add(stage.Op(kResumeOp));
    Add(StageTestGraph::Const(stage.Node("error_code"), Tensor(int32{0}))
            .Device(kCpu));
    Add(StageTestGraph::Const(stage.Node("error_message"), Tensor(""))
            .Device(kCpu));
    add(stage.Op(kCloseOp)
            .Input(stage.Node("error_code"), 0, DT_INT32)
            .Input(stage.Node("error_message"), 0, DT_STRING));
  }

  static int64_t Y(int64_t record) { return 2 * (record + 3 * record + 1); }

  Status Create() {
    SessionOptions options;
    auto* graph_options = options.config.mutable_graph_options();
    CHECK(graph_options->mutable_rewrite_options()->MergeFromString(
        fields_.SerializeAsString()));
    CHECK(graph_options->mutable_optimizer_options()->MergeFromString(
        optimizer_.SerializeAsString()));
    // The tests look for each of their nodes.
    graph_options->mutable_rewrite_options()->set_constant_folding(
        RewriterConfig::OFF);
    // As in Python. Otherwise, a session cannot be extended.
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    session_.reset(NewSession(options));
    return session_->Create(graph_);
  }

  // Returns the runner that SmartStage has made.
  PrefetchRunnerOptions OnlyRunner() {
    std::vector<PrefetchRunnerOptions> runners;
    TF_CHECK_OK(FindRunnersOfSession(session_.get(), {}, &runners));
    CHECK_EQ(runners.size(), 1);
    return runners[0];
  }

  // Expects the losses of the records 0, 1, 2, ... from the steps.
  void ExpectLosses() {
    for (int64_t i = 0; i < 200; ++i) {
      std::vector<Tensor> outputs;
      TF_CHECK_OK(session_->Run({}, {"loss:0"}, {}, &outputs));
      EXPECT_EQ(outputs[0].scalar<int64_t>()(), 7 * Y(i) + 5);
    }
  }

  void Start(const PrefetchRunnerOptions& options) {
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  // Runs once, and returns the number of the GPU device of each node that ran
  // on one.
  std::map<std::string, int> GpusOf(const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets) {
    RunOptions run_options;
    run_options.set_output_partition_graphs(true);
    RunMetadata metadata;
    std::vector<Tensor> outputs;
    TF_CHECK_OK(
        session_->Run(run_options, {}, fetches, targets, &outputs, &metadata));
    std::map<std::string, int> gpus;
    for (const GraphDef& graph : metadata.partition_graphs()) {
      for (const NodeDef& node : graph.node()) {
        DeviceNameUtils::ParsedName device;
        CHECK(DeviceNameUtils::ParseFullName(node.device(), &device));
        if (device.type == "GPU") gpus[node.name()] = device.id;
      }
    }
    return gpus;
  }

  RewriterFields fields_;
  OptimizerFields optimizer_;
  GraphDef graph_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

TEST_F(StreamSessionTest, OpsRunOnTheirStream) {
  Add(StageTestGraph::Const("one", Tensor(int64_t{1})).Device(kCpu));
  AddLinear("a", {{"one", 0, DT_INT64}}, 2, 1, /*stream=*/0);
  AddLinear("b", {{"one", 0, DT_INT64}}, 3, 1, /*stream=*/1);
  AddLinear("c", {{"a", 0, DT_INT64}, {"b", 0, DT_INT64}}, 1, 0,
            /*stream=*/-1);
  ASSERT_EQ(Create(), OkStatus());
  const auto gpus = GpusOf({"c:0"}, {});
  EXPECT_EQ(gpus.at("a"), 0);
  EXPECT_EQ(gpus.at("b"), 1);
  EXPECT_EQ(gpus.at("c"), 0);
  for (int i = 0; i < 100; ++i) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"c:0"}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<int64_t>()(), 7);
  }
}

TEST_F(StreamSessionTest, AStreamThatTheSessionLacksIsRefused) {
  Add(StageTestGraph::Const("one", Tensor(int64_t{1})).Device(kCpu));
  AddLinear("a", {{"one", 0, DT_INT64}}, 2, 1, /*stream=*/2);
  const Status status = Create();
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Node 'a' is in tf.stream(2), but the session has 2"));
}

TEST_F(StreamSessionTest, WithoutMultiStreamNumbersHaveNoEffect) {
  fields_.set_use_multi_stream(RewriterConfig::OFF);
  Add(StageTestGraph::Const("one", Tensor(int64_t{1})).Device(kCpu));
  AddLinear("a", {{"one", 0, DT_INT64}}, 2, 1, /*stream=*/2);
  ASSERT_EQ(Create(), OkStatus());
  EXPECT_EQ(GpusOf({"a:0"}, {}).at("a"), 0);
}

TEST_F(StreamSessionTest, NodesThatAreAddedLaterRunOnTheirStream) {
  Add(StageTestGraph::Const("one", Tensor(int64_t{1})).Device(kCpu));
  Add(NodeDefBuilder("v", "VarHandleOp")
          .Attr("dtype", DT_INT64)
          .Attr("shape", TensorShape())
          .Attr(kStreamAttr, 1)
          .Device(kGpu));
  AddLinear("a", {{"one", 0, DT_INT64}}, 2, 1, /*stream=*/-1);
  Add(NodeDefBuilder("assign", "AssignVariableOp")
          .Input("v", 0, DT_RESOURCE)
          .Input("a", 0, DT_INT64)
          .Device(kGpu));
  ASSERT_EQ(Create(), OkStatus());
  EXPECT_EQ(GpusOf({}, {"assign"}).at("assign"), 1);
  graph_.Clear();
  Add(NodeDefBuilder("read", "ReadVariableOp")
          .Input("v", 0, DT_RESOURCE)
          .Attr("dtype", DT_INT64)
          .Device(kGpu));
  AddLinear("b", {{"read", 0, DT_INT64}}, 5, 0, /*stream=*/-1);
  TF_CHECK_OK(session_->Extend(graph_));
  const auto gpus = GpusOf({"b:0"}, {});
  EXPECT_EQ(gpus.at("read"), 1);
  EXPECT_EQ(gpus.at("b"), 0);
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session_->Run({}, {"b:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), 15);
}

// The region of a manual stage, whose records are on the GPU.
TEST_F(StreamSessionTest, ARegionRunsOnTheStreamOfItsStage) {
  optimizer_.set_stage_multi_stream(true);
  AddRegion();
  StageTestGraph stage;
  stage.capacity = 3;
  AddStage(stage);
  AddLinear("loss", {{stage.Node(kTakeOp), 1, DT_INT64}}, 7, 5,
            /*stream=*/-1);
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));

  const auto staged = GpusOf({}, {stage.Node(kPutOp)});
  EXPECT_EQ(staged.at(stage.Node("region/x")), 1);
  EXPECT_EQ(staged.at(stage.Node("region/y")), 1);
  EXPECT_EQ(staged.at(stage.Node(kPutOp)), 1);
  const auto step = GpusOf({"loss:0"}, {});
  EXPECT_EQ(step.at(stage.Node(kTakeOp)), 0);
  EXPECT_EQ(step.at("loss"), 0);

  PrefetchRunnerOptions options = RunnerOptionsOf(stage);
  for (int i = 0; i < 2; ++i) options.add_fetch_ops(stage.Node(kPutOp));
  Start(options);
  // Two producers may change the order of the records.
  std::set<int64_t> records;
  for (int i = 0; i < 300; ++i) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {stage.Node(kTakeOp) + ":0", "loss:0"}, {},
                              &outputs));
    const int64_t record = outputs[0].scalar<int64_t>()();
    EXPECT_TRUE(records.insert(record).second) << record;
    EXPECT_EQ(outputs[1].scalar<int64_t>()(), 7 * Y(record) + 5);
  }
}

TEST_F(StreamSessionTest, AGraphWithAStageMayGrow) {
  optimizer_.set_stage_multi_stream(true);
  AddRegion();
  StageTestGraph stage;
  AddStage(stage);
  AddLinear("loss", {{stage.Node(kTakeOp), 1, DT_INT64}}, 7, 5,
            /*stream=*/-1);
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  graph_.Clear();
  AddLinear("later", {{stage.Node(kTakeOp), 1, DT_INT64}}, 3, 0,
            /*stream=*/-1);
  ASSERT_EQ(session_->Extend(graph_), OkStatus());
  EXPECT_EQ(GpusOf({}, {stage.Node(kPutOp)}).at(stage.Node(kPutOp)), 1);
  EXPECT_EQ(GpusOf({"later:0"}, {}).at(stage.Node(kTakeOp)), 0);
}

// With stage_subgraph_on_cpu, the records of a manual stage come from the CPU.
TEST_F(StreamSessionTest, AManualStageOnTheCpuDeliversToTheStep) {
  optimizer_.set_stage_multi_stream(true);
  optimizer_.set_stage_subgraph_on_cpu(true);
  AddRegion();
  StageTestGraph stage;
  AddStage(stage);
  AddLinear("loss", {{stage.Node(kTakeOp), 1, DT_INT64}}, 7, 5,
            /*stream=*/-1);
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  const auto staged = GpusOf({}, {stage.Node(kPutOp)});
  EXPECT_EQ(staged.at(stage.Node(kPutOp)), 0);
  EXPECT_EQ(staged.count("y"), 0);
  PrefetchRunnerOptions options = RunnerOptionsOf(stage);
  options.add_fetch_ops(stage.Node(kPutOp));
  Start(options);
  ExpectLosses();
}

TEST_F(StreamSessionTest, SmartStageRunsItsRegionOnTheStreamOfItsOptions) {
  optimizer_.set_stage_multi_stream(true);
  optimizer_.set_do_smart_stage(true);
  auto* options = optimizer_.mutable_smart_stage_options();
  options->set_stage_subgraph_stream_id(1);
  options->set_capacity(3);
  AddRegion();
  AddLinear("loss", {{"y", 0, DT_INT64}}, 7, 5, /*stream=*/-1);
  AddNodeAttr(kTargetAttr, true, graph_.mutable_node(graph_.node_size() - 1));
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  const PrefetchRunnerOptions runner = OnlyRunner();
  const auto staged = GpusOf({}, {runner.fetch_ops(0)});
  EXPECT_EQ(staged.at("prefetch/staged/x"), 1);
  EXPECT_EQ(staged.at("prefetch/staged/y"), 1);
  Start(runner);
  // The run above has put record 0.
  ExpectLosses();
}

// A region that is on the CPU has no stream; its records arrive where the step
// uses them.
TEST_F(StreamSessionTest, RecordsOfTheCpuArriveOnTheStreamOfTheStep) {
  optimizer_.set_stage_multi_stream(true);
  optimizer_.set_stage_subgraph_on_cpu(true);
  optimizer_.set_do_smart_stage(true);
  optimizer_.mutable_smart_stage_options()->set_stage_subgraph_stream_id(1);
  AddRegion();
  AddLinear("loss", {{"y", 0, DT_INT64}}, 7, 5, /*stream=*/1);
  AddNodeAttr(kTargetAttr, true, graph_.mutable_node(graph_.node_size() - 1));
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  const PrefetchRunnerOptions runner = OnlyRunner();
  const auto staged = GpusOf({}, {runner.fetch_ops(0)});
  EXPECT_EQ(staged.at("prefetch/TensorBufferPut"), 1);
  EXPECT_EQ(staged.count("prefetch/staged/y"), 0);
  Start(runner);
  ExpectLosses();
}

// z = weight_x * x + bias + weight_y * y, of which the part of y is in stream
// 1, and the gradients are outside of scopes.
class LinearRegressionTest : public StreamSessionTest {
 protected:
  LinearRegressionTest() {
    for (const char* name : {"x", "y", "z"}) {
      Add(NodeDefBuilder(name, "Placeholder")
              .Attr("dtype", DT_FLOAT)
              .Attr("shape", TensorShape())
              .Device(kCpu));
    }
    Add(StageTestGraph::Const("rate", Tensor(0.3f)).Device(kGpu));
    AddVariable("weight_x", 0);
    AddVariable("bias", 0);
    AddVariable("weight_y", 1);
    AddProduct("part_x", "weight_x/read", "x", 0);
    AddLinear("result_x", {{"part_x", 0, DT_FLOAT}, {"bias/read", 0, DT_FLOAT}},
              1, 0, 0);
    AddProduct("result_y", "weight_y/read", "y", 1);
    AddLinear("minus_z", {{"z", 0, DT_FLOAT}}, -1, 0, -1);
    AddLinear("error",
              {{"result_x", 0, DT_FLOAT},
               {"result_y", 0, DT_FLOAT},
               {"minus_z", 0, DT_FLOAT}},
              1, 0, -1);
    AddProduct("bias/gradient", "rate", "error", -1);
    AddProduct("weight_x/gradient", "bias/gradient", "x", -1);
    AddProduct("weight_y/gradient", "bias/gradient", "y", -1);
    for (const char* name : {"weight_x", "bias", "weight_y"}) {
      AddUpdate(name);
    }
  }

  // Adds a variable, which is initialized to 0.
  void AddVariable(const std::string& name, int stream) {
    Add(NodeDefBuilder(name, "VarHandleOp")
            .Attr("dtype", DT_FLOAT)
            .Attr("shape", TensorShape())
            .Attr("shared_name", name)
            .Attr(kStreamAttr, stream)
            .Device(kGpu));
    Add(StageTestGraph::Const(name + "/zero", Tensor(0.0f)).Device(kCpu));
    AddLinear(name + "/initial", {{name + "/zero", 0, DT_FLOAT}}, 1, 0, stream);
    AddAssign(name + "/initialize", name, name + "/initial");
    Add(NodeDefBuilder(name + "/read", "ReadVariableOp")
            .Input(name, 0, DT_RESOURCE)
            .Attr("dtype", DT_FLOAT)
            .Attr(kStreamAttr, stream)
            .Device(kGpu));
  }

  void AddAssign(const std::string& name, const std::string& variable,
                 const std::string& value) {
    Add(NodeDefBuilder(name, "AssignVariableOp")
            .Input(variable, 0, DT_RESOURCE)
            .Input(value, 0, DT_FLOAT)
            .Device(kGpu));
  }

  void AddProduct(const std::string& name, const std::string& a,
                  const std::string& b, int stream) {
    NodeDefBuilder builder(name, "StagingTestProduct");
    builder.Input(a, 0, DT_FLOAT).Input(b, 0, DT_FLOAT).Device(kGpu);
    if (stream >= 0) builder.Attr(kStreamAttr, stream);
    Add(builder);
  }

  // Subtracts the gradient.
  void AddUpdate(const std::string& name) {
    AddLinear(name + "/change", {{name + "/gradient", 0, DT_FLOAT}}, -1, 0, -1);
    AddLinear(name + "/new",
              {{name + "/read", 0, DT_FLOAT}, {name + "/change", 0, DT_FLOAT}},
              1, 0, -1);
    AddAssign(name + "/update", name, name + "/new");
  }
};

TEST_F(LinearRegressionTest, Trains) {
  ASSERT_EQ(Create(), OkStatus());
  TF_CHECK_OK(session_->Run(
      {}, {}, {"weight_x/initialize", "bias/initialize", "weight_y/initialize"},
      nullptr));
  const std::vector<std::string> updates = {"weight_x/update", "bias/update",
                                            "weight_y/update"};
  for (int step = 0; step < 400; ++step) {
    const float x = std::sin(step);
    const float y = std::cos(2.5f * step);
    TF_CHECK_OK(session_->Run({{"x:0", Tensor(x)},
                               {"y:0", Tensor(y)},
                               {"z:0", Tensor(2 * x - y / 2 + 0.25f)}},
                              {}, updates, nullptr));
  }
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session_->Run(
      {}, {"weight_x/read:0", "weight_y/read:0", "bias/read:0"}, {}, &outputs));
  EXPECT_NEAR(outputs[0].scalar<float>()(), 2, 1e-3);
  EXPECT_NEAR(outputs[1].scalar<float>()(), -0.5, 1e-3);
  EXPECT_NEAR(outputs[2].scalar<float>()(), 0.25, 1e-3);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
