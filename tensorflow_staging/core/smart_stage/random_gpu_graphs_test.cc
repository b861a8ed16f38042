// SPDX-License-Identifier: Apache-2.0
//
// Runs random graphs on one to four fake GPUs of one to three streams, whose
// kernels and copies are late at random. With SmartStage, each step must see
// the values of one record, as it does without. A failure reports the seed of
// its graph.
//
// The environment variable STAGING_RANDOM_GRAPHS sets how many graphs run, and
// STAGING_RANDOM_SEED the seed of the first one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kGraphs = 16;
constexpr int kSteps = 16;

using Values = std::vector<int64_t>;

// A tensor of a record: its size depends on the record, so that memory is used
// again in another division.
Values Spread(int64_t record, int64_t largest) {
  Values values(1 + (7919 * (record + 1)) % largest);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 31 * record + i;
  return values;
}

REGISTER_OP("StagingTestSpread")
    .Input("record: int64")
    .Output("values: int64")
    .Attr("largest: int")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->UnknownShapeOfRank(1));
      return OkStatus();
    });

class SpreadOp : public OpKernel {
 public:
  explicit SpreadOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("largest", &largest_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Values values = Spread(ctx->input(0).scalar<int64_t>()(), largest_);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(
        ctx,
        ctx->allocate_output(
            0, TensorShape({static_cast<int64_t>(values.size())}), &output));
    std::copy(values.begin(), values.end(), output->flat<int64_t>().data());
  }

 private:
  int64_t largest_;
};
REGISTER_KERNEL_BUILDER(Name("StagingTestSpread").Device(DEVICE_CPU), SpreadOp);

// A graph of StagingTestLinear over the tensor of a record, on random devices
// and streams. Some of the nodes are targets, which remain in the step.
class RandomGpuGraph {
 public:
  RandomGpuGraph(std::mt19937* random, int gpus, int streams)
      : random_(*random), streams_(streams) {
    largest_ = 1 + Below(3000);
    AddSource();
    nodes_.emplace_back();
    const int count = 4 + Below(20);
    for (int i = 1; i <= count; ++i) {
      AddLinear(/*device=*/Below(gpus + 1) - 1,
                /*target=*/Below(4) == 0 || i == count);
    }
  }

  const GraphDef& graph() const { return graph_; }
  // The names of the targets.
  const std::vector<std::string>& targets() const { return targets_; }

  // Returns the value of each target in the step that has this record.
  std::map<std::string, Values> ExpectedTargets(int64_t record) const {
    std::vector<Values> values = {Spread(record, largest_)};
    for (size_t i = 1; i < nodes_.size(); ++i) {
      const Linear& node = nodes_[i];
      Values result(values[0].size(), 0);
      for (size_t j = 0; j < result.size(); ++j) {
        uint64_t sum = 0;
        for (int input : node.inputs) sum += values[input][j];
        result[j] = node.scale * sum + node.offset;
      }
      values.push_back(std::move(result));
    }
    std::map<std::string, Values> expected;
    for (size_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].target) expected[NameOf(i)] = values[i];
    }
    return expected;
  }

 private:
  struct Linear {
    std::vector<int> inputs;
    int scale = 0;
    int offset = 0;
    bool target = false;
  };

  int Below(int bound) { return random_() % bound; }

  static std::string NameOf(int node) { return absl::StrCat("n", node); }

  void Add(NodeDefBuilder builder) { StageTestGraph::Add(builder, &graph_); }

  void AddSource() {
    AddRangeSource(/*stop=*/1000000, &graph_);
    Add(NodeDefBuilder(NameOf(0), "StagingTestSpread")
            .Input("record", 0, DT_INT64)
            .Attr("largest", largest_)
            .Device("/device:CPU:0"));
  }

  // Adds a node on GPU `gpu`, or on the CPU if that is -1.
  void AddLinear(int gpu, bool target) {
    Linear node;
    std::vector<NodeDefBuilder::NodeOut> inputs;
    for (int i = Below(3); i >= 0; --i) {
      node.inputs.push_back(Below(nodes_.size()));
      inputs.push_back({NameOf(node.inputs.back()), 0, DT_INT64});
    }
    node.scale = 1 + Below(5);
    node.offset = Below(100);
    node.target = target;
    const std::string name = NameOf(nodes_.size());
    NodeDefBuilder builder(name, "StagingTestLinear");
    builder.Input(inputs)
        .Attr("scale", node.scale)
        .Attr("offset", node.offset)
        .Device(gpu < 0 ? "/device:CPU:0" : absl::StrCat("/device:GPU:", gpu));
    const int stream = Below(streams_ + 1) - 1;
    if (stream >= 0) builder.Attr(kStreamAttr, stream);
    if (target) {
      builder.Attr(kTargetAttr, true);
      targets_.push_back(name);
    }
    Add(builder);
    nodes_.push_back(std::move(node));
  }

  std::mt19937& random_;
  const int streams_;
  int64_t largest_;
  GraphDef graph_;
  // Node 0 is the tensor of the record.
  std::vector<Linear> nodes_;
  std::vector<std::string> targets_;
};

// Runs steps of one session in several threads at the same time, and checks
// their values.
class CheckedSteps {
 public:
  CheckedSteps(Session* session, const RandomGpuGraph& graph)
      : session_(session), graph_(graph), fetches_({"record:0"}) {
    for (const std::string& target : graph.targets()) {
      fetches_.push_back(absl::StrCat(target, ":0"));
    }
  }

  void Run(int threads) {
    std::vector<std::unique_ptr<Thread>> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back(Env::Default()->StartThread({}, "step", [&] {
        for (int step = 0; step < kSteps / threads; ++step) RunOne();
      }));
    }
  }

 private:
  void RunOne() {
    std::vector<Tensor> outputs;
    const Status status = session_->Run({}, fetches_, {}, &outputs);
    ASSERT_EQ(status, OkStatus());
    const int64_t record = outputs[0].scalar<int64_t>()();
    {
      mutex_lock l(mu_);
      EXPECT_TRUE(records_.insert(record).second) << record;
    }
    const std::map<std::string, Values> expected =
        graph_.ExpectedTargets(record);
    for (size_t i = 1; i < fetches_.size(); ++i) {
      const auto values = outputs[i].flat<int64_t>();
      EXPECT_EQ(Values(values.data(), values.data() + values.size()),
                expected.at(graph_.targets()[i - 1]))
          << fetches_[i];
    }
  }

  Session* const session_;
  const RandomGpuGraph& graph_;
  std::vector<std::string> fetches_;
  mutex mu_;
  std::set<int64_t> records_ TF_GUARDED_BY(mu_);
};

class RandomGpuGraphsTest : public ::testing::Test {
 protected:
  RandomGpuGraphsTest() { SetFakeGpuDelay(absl::Microseconds(150)); }

  ~RandomGpuGraphsTest() override {
    SetFakeGpuDelay(absl::ZeroDuration());
    SetFakeGpuCount(1);
  }

  static std::shared_ptr<Session> NewSessionOver(
      const RandomGpuGraph& graph, int streams, const OptimizerFields& fields) {
    SessionOptions options;
    auto* graph_options = options.config.mutable_graph_options();
    CHECK(graph_options->mutable_optimizer_options()->MergeFromString(
        fields.SerializeAsString()));
    UseMultiStream(streams, &options);
    std::shared_ptr<Session> session(NewSession(options));
    TF_CHECK_OK(session->Create(graph.graph()));
    TF_CHECK_OK(session->Run({}, {}, {"initializer"}, nullptr));
    return session;
  }

  // Runs a step, and returns how many GPUs take a share of its record.
  static int CountShares(Session* session, const RandomGpuGraph& graph) {
    RunOptions options;
    options.set_output_partition_graphs(true);
    RunMetadata metadata;
    TF_CHECK_OK(
        session->Run(options, {}, {}, graph.targets(), nullptr, &metadata));
    int shares = 0;
    for (const GraphDef& partition : metadata.partition_graphs()) {
      for (const NodeDef& node : partition.node()) {
        if (node.op() == kShareOp) ++shares;
      }
    }
    return shares;
  }

  // Returns the number in an environment variable, or else `number`.
  static int FromEnvironment(const char* variable, int number) {
    const char* value = std::getenv(variable);
    return value != nullptr ? std::atoi(value) : number;
  }
};

TEST_F(RandomGpuGraphsTest, StepsSeeTheValuesOfTheirRecords) {
  const int first = FromEnvironment("STAGING_RANDOM_SEED", 0);
  const int end = first + FromEnvironment("STAGING_RANDOM_GRAPHS", kGraphs);
  int shares = 0;
  for (int seed = first; seed < end; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const int gpus = 1 + seed % 4;
    SetFakeGpuCount(gpus);
    const int streams = 1 + random() % 3;
    const RandomGpuGraph graph(&random, gpus, streams);
    const int step_threads = 1 + random() % 2;

    const auto plain = NewSessionOver(graph, streams, OptimizerFields());
    CheckedSteps(plain.get(), graph).Run(step_threads);
    TF_CHECK_OK(plain->Close());

    OptimizerFields fields;
    fields.set_do_smart_stage(true);
    fields.set_stage_subgraph_on_cpu(random() % 2 == 0);
    fields.set_stage_multi_stream(true);
    auto* options = fields.mutable_smart_stage_options();
    options->set_stage_subgraph_stream_id(random() % streams);
    options->set_capacity(1 + random() % 4);
    options->set_num_threads(1 + random() % 3);
    const auto staged = NewSessionOver(graph, streams, fields);
    std::vector<PrefetchRunnerOptions> runners;
    TF_CHECK_OK(FindRunnersOfSession(staged.get(), {}, &runners));
    ASSERT_EQ(runners.size(), 1);
    std::shared_ptr<PrefetchRunner> runner;
    TF_CHECK_OK(PrefetchRunner::Create(staged, runners[0], &runner));
    TF_CHECK_OK(runner->Start());
    shares += CountShares(staged.get(), graph);
    CheckedSteps(staged.get(), graph).Run(step_threads);
    runner.reset();
    TF_CHECK_OK(staged->Close());
    if (HasFailure()) break;
  }
  // One graph may have none.
  if (end - first >= kGraphs) {
    EXPECT_GT(shares, 0);
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
