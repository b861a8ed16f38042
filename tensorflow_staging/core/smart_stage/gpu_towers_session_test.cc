// SPDX-License-Identifier: Apache-2.0
//
// Tests in sessions with two to four fake GPUs that each GPU finds its share of a
// record in its own memory: a tower on each GPU uses a part of the record, and
// all towers use another.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/buffer_stats.pb.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/full_buffer.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

using NodeOut = NodeDefBuilder::NodeOut;

constexpr int kCapacity = 3;
// How many numbers a tower gets of a record.
constexpr int64_t kPiece = 500;

// How the towers get their pieces.
enum class Kind {
  // Of a split, by SmartStage.
  kSmartStage,
  // Of a split, by tf.staged.
  kStaged,
  // Of a get_next for each of them, by SmartStage.
  kSmartGetNexts,
  // Of a get_next for each of them, by tf.staged.
  kGetNexts,
};

struct Case {
  std::string name;
  Kind kind;
  int gpus;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// A session over
//
//   record (0, 1, 2, ...) --> piece 0, piece 1, ...
//   piece k --> tower_k, record --> common_k, both on GPU k
//
// where piece k has the numbers from `record` + k * kPiece on, or those from an
// element of its own on, which is the record of the tower. A tower has 10 times
// its piece, and common_k 3 times the record of the step.
class GpuTowersSessionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    SetFakeGpuCount(gpus());
    GraphDef graph;
    AddRangeSource(/*stop=*/int64_t{1} << 40, &graph);
    if (HasGetNexts()) {
      AddPiecesOfGetNexts(&graph);
    } else {
      AddSplit(&graph);
    }
    if (!IsSmart()) AddStage(&graph);
    for (int gpu = 0; gpu < gpus(); ++gpu) AddTower(gpu, &graph);
    AddTraining(&graph);

    OptimizerFields fields;
    fields.set_do_smart_stage(IsSmart());
    fields.set_stage_subgraph_on_cpu(true);
    fields.mutable_smart_stage_options()->set_capacity(kCapacity);
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(4);
    // As Python's sessions, whose graphs may grow.
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    CHECK(options.config.mutable_graph_options()
              ->mutable_optimizer_options()
              ->MergeFromString(fields.SerializeAsString()));
    session_.reset(NewSession(options));
    SetFakeGpuCount(1);
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }

  void TearDown() override {
    SetFakeGpuDelay(absl::ZeroDuration());
    runner_.reset();
    if (session_ != nullptr) TF_CHECK_OK(session_->Close());
  }

  static int gpus() { return GetParam().gpus; }
  static bool IsSmart() {
    return GetParam().kind == Kind::kSmartStage ||
           GetParam().kind == Kind::kSmartGetNexts;
  }
  static bool HasGetNexts() {
    return GetParam().kind == Kind::kGetNexts ||
           GetParam().kind == Kind::kSmartGetNexts;
  }

  void StartStage() {
    PrefetchRunnerOptions options;
    if (!IsSmart()) {
      options = RunnerOptionsOf(stage_);
      options.add_fetch_ops(stage_.Node(kPutOp));
    } else {
      std::vector<PrefetchRunnerOptions> runners;
      TF_CHECK_OK(FindRunnersOfSession(session_.get(), {}, &runners));
      ASSERT_EQ(runners.size(), 1);
      options = runners[0];
    }
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  static std::string Tower(int gpu) { return absl::StrCat("tower_", gpu); }
  static std::string Common(int gpu) { return absl::StrCat("common_", gpu); }
  // The op that ends a tower with a failure.
  static std::string Failure(int gpu) { return absl::StrCat("fail_", gpu); }
  // These bring the numbers of a tower to another run of the session.
  static std::string Keep(int gpu) { return absl::StrCat("keep_", gpu); }
  static std::string Kept(int gpu) { return absl::StrCat("kept_", gpu); }

  // What the towers have, and these nodes.
  static std::vector<std::string> AllTowers(
      std::vector<std::string> names = {}) {
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      names.push_back(Tower(gpu));
      names.push_back(Common(gpu));
    }
    return names;
  }

  FakeGpuCounts& Counts(int gpu) {
    return FakeGpu::Of(session_.get(), gpu)->counts();
  }

  // Checks the values of the towers in the step of this record.
  void ExpectStep(int64_t record) {
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({}, AllTowers(), {}, &outputs), OkStatus());
    std::set<int64_t> elements;
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      const auto values = outputs[2 * gpu].flat<int64_t>();
      ASSERT_EQ(values.size(), kPiece);
      for (int64_t i = 0; i < kPiece; ++i) {
        ASSERT_EQ(values(i), values(0) + 10 * i) << i << " on GPU " << gpu;
      }
      const int64_t common = outputs[2 * gpu + 1].scalar<int64_t>()();
      if (HasGetNexts()) {
        ASSERT_EQ(common, outputs[1].scalar<int64_t>()());
        elements.insert(values(0) / 10);
      } else {
        ASSERT_EQ(values(0), 10 * (record + gpu * kPiece));
        ASSERT_EQ(common, 3 * record);
      }
    }
    if (!HasGetNexts()) return;
    std::set<int64_t> expected;
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      expected.insert(record * gpus() + gpu);
    }
    ASSERT_EQ(elements, expected);
  }

  // Runs the session once and returns the ops of each device.
  std::map<std::string, std::multiset<std::string>> OpsOf(
      const std::vector<std::string>& targets) {
    RunOptions run_options;
    run_options.set_output_partition_graphs(true);
    RunMetadata metadata;
    std::vector<Tensor> outputs;
    TF_CHECK_OK(
        session_->Run(run_options, {}, {}, targets, &outputs, &metadata));
    std::map<std::string, std::multiset<std::string>> ops;
    for (const GraphDef& graph : metadata.partition_graphs()) {
      for (const NodeDef& node : graph.node()) {
        ops[node.device().substr(node.device().size() - 5)].insert(node.op());
      }
    }
    return ops;
  }

  static void Add(NodeDefBuilder builder, GraphDef* graph) {
    StageTestGraph::Add(builder, graph);
  }

  static NodeDefBuilder Linear(const std::string& name, const NodeOut& input) {
    return NodeDefBuilder(name, "StagingTestLinear")
        .Input(std::vector<NodeOut>{input});
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
  // Where a step has the piece of each tower.
  std::vector<NodeOut> pieces_;

 private:
  // Adds `name`, the `count` numbers from `start` on.
  static void AddRange(const std::string& name, const std::string& start,
                       int64_t count, GraphDef* graph) {
    const std::string limit = absl::StrCat(name, "_limit");
    Add(Linear(limit, {start, 0, DT_INT64})
            .Attr("offset", count)
            .Device("/device:CPU:0"),
        graph);
    Add(NodeDefBuilder(name, "Range")
            .Input(start, 0, DT_INT64)
            .Input(limit, 0, DT_INT64)
            .Input("step", 0, DT_INT64)
            .Device("/device:CPU:0"),
        graph);
  }

  void AddSplit(GraphDef* graph) {
    AddRange("values", "record", gpus() * kPiece, graph);
    Add(StageTestGraph::Const("axis", Tensor(int32{0})), graph);
    Add(NodeDefBuilder("split", "Split")
            .Input("axis", 0, DT_INT32)
            .Input("values", 0, DT_INT64)
            .Attr("num_split", gpus())
            .Device("/device:CPU:0"),
        graph);
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      pieces_.push_back({"split", gpu, DT_INT64});
    }
    common_ = {"record", 0, DT_INT64};
  }

  void AddPiecesOfGetNexts(GraphDef* graph) {
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      const std::string element =
          gpu == 0 ? "record" : absl::StrCat("record_", gpu);
      if (gpu > 0) {
        Add(NodeDefBuilder(element, "IteratorGetNext")
                .Input("iterator", 0, DT_RESOURCE)
                .Attr("output_types", DataTypeVector{DT_INT64})
                .Attr("output_shapes",
                      std::vector<PartialTensorShape>{PartialTensorShape({})})
                .Device("/device:CPU:0"),
            graph);
      }
      const std::string piece = absl::StrCat("piece_", gpu);
      AddRange(piece, element, kPiece, graph);
      pieces_.push_back({piece, 0, DT_INT64});
    }
    common_ = {"record", 0, DT_INT64};
  }

  // Replaces the pieces and what is common by outputs of a stage.
  void AddStage(GraphDef* graph) {
    stage_.capacity = kCapacity;
    stage_.AddTo(graph, "record");
    std::vector<NodeOut> record = pieces_;
    record.push_back(common_);
    for (NodeDef& node : *graph->mutable_node()) {
      if (node.op() != kPutOp && node.op() != kTakeOp) continue;
      SetAttrValue(DataTypeVector(record.size(), DT_INT64),
                   &(*node.mutable_attr())["dtypes"]);
      if (node.op() == kTakeOp) continue;
      node.clear_input();
      for (const NodeOut& tensor : record) {
        node.add_input(absl::StrCat(tensor.node, ":", tensor.index));
      }
    }
    const std::string take = stage_.Node(kTakeOp);
    for (int gpu = 0; gpu < gpus(); ++gpu) pieces_[gpu] = {take, gpu, DT_INT64};
    common_ = {take, gpus(), DT_INT64};
  }

  void AddTower(int gpu, GraphDef* graph) {
    const std::string device = absl::StrCat("/device:GPU:", gpu);
    Add(Linear(Tower(gpu), pieces_[gpu])
            .Attr("scale", 10)
            .Attr(kTargetAttr, true)
            .Device(device),
        graph);
    Add(Linear(Common(gpu), common_)
            .Attr("scale", 3)
            .Attr(kTargetAttr, true)
            .Device(device),
        graph);
    // Their shapes differ.
    Add(NodeDefBuilder(Failure(gpu), "StagingTestLinear")
            .Input(std::vector<NodeOut>{{Tower(gpu), 0, DT_INT64},
                                        {Common(gpu), 0, DT_INT64}})
            .Device(device),
        graph);
    Add(NodeDefBuilder(Keep(gpu), "Stage")
            .Input(std::vector<NodeOut>{{Tower(gpu), 0, DT_INT64}})
            .Attr("shared_name", Keep(gpu))
            .Attr(kTargetAttr, true)
            .Device("/device:CPU:0"),
        graph);
    Add(NodeDefBuilder(Kept(gpu), "Unstage")
            .Attr("dtypes", DataTypeVector{DT_INT64})
            .Attr("shared_name", Keep(gpu))
            .Device("/device:CPU:0"),
        graph);
  }

  // Adds an update that needs all towers.
  static void AddTraining(GraphDef* graph) {
    Add(NodeDefBuilder("total", "VarHandleOp")
            .Attr("dtype", DT_INT64)
            .Attr("shape", TensorShape({}))
            .Device("/device:CPU:0"),
        graph);
    NodeDefBuilder train("train", "AssignAddVariableOp");
    train.Input("total", 0, DT_RESOURCE)
        .Input("step", 0, DT_INT64)
        .Device("/device:CPU:0");
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      for (const std::string& node : {Tower(gpu), Common(gpu), Keep(gpu)}) {
        train.ControlInput(node);
      }
    }
    Add(train, graph);
  }

  StageTestGraph stage_;
  NodeOut common_{"", 0, DT_INT64};
};

INSTANTIATE_TEST_SUITE_P(
    Cases, GpuTowersSessionTest,
    ::testing::Values(Case{"SmartStageOnTwo", Kind::kSmartStage, 2},
                      Case{"SmartStageOnFour", Kind::kSmartStage, 4},
                      Case{"SmartGetNextsOnTwo", Kind::kSmartGetNexts, 2},
                      Case{"SmartGetNextsOnFour", Kind::kSmartGetNexts, 4},
                      Case{"StagedOnTwo", Kind::kStaged, 2},
                      Case{"StagedOnFour", Kind::kStaged, 4},
                      Case{"GetNextsOnTwo", Kind::kGetNexts, 2},
                      Case{"GetNextsOnFour", Kind::kGetNexts, 4}),
    [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST_P(GpuTowersSessionTest, EachTowerGetsItsPieceOfEachRecord) {
  SetFakeGpuDelay(absl::Microseconds(100));
  StartStage();
  for (int64_t record = 0; record < 50; ++record) {
    ExpectStep(record);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GpuTowersSessionTest, NoTowerReceivesACopy) {
  StartStage();
  const auto ops = OpsOf(AllTowers());
  int takes = 0, shares = 0;
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    const auto& of_gpu = ops.at(absl::StrCat("GPU:", gpu));
    takes += of_gpu.count(kTakeOp);
    shares += of_gpu.count(kShareOp);
    EXPECT_EQ(of_gpu.count("_Recv"), 0) << gpu;
    EXPECT_EQ(of_gpu.count("_Send"), 0) << gpu;
  }
  EXPECT_EQ(takes, 1);
  EXPECT_EQ(shares, gpus() - 1);
}

// A run without the other towers.
TEST_P(GpuTowersSessionTest, OneTowerAloneGetsItsShare) {
  if (GetParam().kind == Kind::kSmartGetNexts) GTEST_SKIP();
  StartStage();
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    const auto ops = OpsOf({Tower(gpu), Common(gpu)});
    EXPECT_EQ(ops.at(absl::StrCat("GPU:", gpu)).count("_Recv"), 0) << gpu;
  }
  ExpectStep(gpus());
}

// Without the stage, it would read no element of the others.
TEST_P(GpuTowersSessionTest, OneTowerAloneMayReadItsElement) {
  if (GetParam().kind != Kind::kSmartGetNexts) GTEST_SKIP();
  StartStage();
  ExpectStep(0);
  AwaitFullBuffer(runner_.get());
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({}, {Tower(gpu)}, {}, &outputs), OkStatus());
    EXPECT_EQ(outputs[0].flat<int64_t>()(0), 10 * (gpus() + gpu));
    EXPECT_EQ(outputs[0].flat<int64_t>()(1), 10 * (gpus() + gpu + 1));
  }
  ExpectStep(2);
}

// A copy by TensorFlow would wait for the stream of the step.
TEST_P(GpuTowersSessionTest, EachGpuGetsOneCopyOfEachRecordAheadOfTheStep) {
  constexpr int kSteps = 60;
  std::vector<int64_t> copies, compute_waits;
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    copies.push_back(Counts(gpu).host_to_device.count);
    compute_waits.push_back(Counts(gpu).compute_waits);
  }
  StartStage();
  for (int i = 0; i < kSteps; ++i) {
    TF_CHECK_OK(session_->Run({}, {}, AllTowers(), nullptr));
  }
  runner_->Stop();
  // Stop may have cancelled a run that had copied its record.
  const int64_t records = runner_->GetStats().records;
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    EXPECT_GE(Counts(gpu).host_to_device.count - copies[gpu], records) << gpu;
    EXPECT_LE(Counts(gpu).host_to_device.count - copies[gpu], records + 1)
        << gpu;
    // The use of a record that is still being copied.
    EXPECT_LE(Counts(gpu).compute_waits - compute_waits[gpu], kSteps) << gpu;
    EXPECT_EQ(Counts(gpu).device_to_device.count, 0) << gpu;
  }
}

TEST_P(GpuTowersSessionTest, TheStageGoesOnWhileAGpuIsBusy) {
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), gpu));
    if (gpu == 0) StartStage();
    AwaitFullBuffer(runner_.get());
    if (HasFatalFailure()) return;
    stopped.Release();
    ExpectStep(gpu);
  }
}

TEST_P(GpuTowersSessionTest, TheShareOfAGpuDoesNotWaitForAnother) {
  StartStage();
  for (int busy = 0; busy < gpus(); ++busy) {
    AwaitFullBuffer(runner_.get());
    if (HasFatalFailure()) return;
    StoppedFakeGpu stopped(FakeGpu::Of(session_.get(), busy));
    std::vector<std::string> keep;
    for (int gpu = 0; gpu < gpus(); ++gpu) keep.push_back(Keep(gpu));
    const std::unique_ptr<Thread> step(Env::Default()->StartThread(
        {}, "step",
        [this, &keep] { TF_CHECK_OK(session_->Run({}, {}, keep, nullptr)); }));
    for (int i = 1; i <= gpus(); ++i) {
      const int gpu = (busy + i) % gpus();
      if (gpu == busy) stopped.Release();
      std::vector<Tensor> outputs;
      TF_CHECK_OK(session_->Run({}, {Kept(gpu)}, {}, &outputs));
      EXPECT_EQ(outputs[0].flat<int64_t>()(1),
                outputs[0].flat<int64_t>()(0) + 10);
    }
  }
}

// The kernels of the stage stay as they are, so TensorFlow copies what is new.
TEST_P(GpuTowersSessionTest, AnOpThatIsAddedLaterGetsTheValuesOfItsStep) {
  StartStage();
  ExpectStep(0);
  // The piece of the first tower, on the last GPU, and that of the last tower, on
  // the first.
  GraphDef later;
  for (const int gpu : {0, gpus() - 1}) {
    const NodeOut& piece = pieces_[gpus() - 1 - gpu];
    Add(Linear(absl::StrCat("later_", gpu), piece)
            .Attr("scale", 10)
            .Device(absl::StrCat("/device:GPU:", gpu)),
        &later);
  }
  ASSERT_EQ(session_->Extend(later), OkStatus());
  for (int64_t record = 1; record < 10; ++record) {
    const int last = gpus() - 1;
    std::vector<Tensor> outputs;
    ASSERT_EQ(session_->Run({},
                            {Tower(0), absl::StrCat("later_", last),
                             Tower(last), "later_0"},
                            AllTowers(), &outputs),
              OkStatus());
    for (const int i : {0, 2}) {
      for (int64_t j = 0; j < kPiece; ++j) {
        ASSERT_EQ(outputs[i + 1].flat<int64_t>()(j),
                  outputs[i].flat<int64_t>()(j));
      }
    }
    ExpectStep(++record);
    if (HasFatalFailure()) return;
  }
}

// With what the GPU of the Take gets, all pieces are on GPUs. Those of the others
// are on the host as well.
TEST_P(GpuTowersSessionTest, SharesCountAsBytes) {
  StartStage();
  BufferStats stats;
  AwaitFullBuffer(runner_.get(), &stats);
  EXPECT_GE(stats.bytes(), stats.records() * (2 * gpus() - 1) * kPiece * 8);
  ASSERT_EQ(stats.device_bytes_size(), gpus()) << stats.ShortDebugString();
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    EXPECT_EQ(stats.devices(gpu), absl::StrCat("GPU:", gpu));
    const int64_t bytes = stats.device_bytes(gpu);
    EXPECT_GE(bytes, stats.records() * kPiece * 8) << gpu;
    EXPECT_LE(bytes, stats.records() * (kPiece + 10) * 8) << gpu;
  }
}

// Each GPU has memory for `records` records at most.
class LimitedGpus {
 public:
  LimitedGpus(Session* session, int gpus, int records) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      limited_.push_back(std::make_unique<LimitedFakeGpu>(
          FakeGpu::Of(session, gpu), records * (kPiece * 8 + 1000)));
    }
  }

 private:
  std::vector<std::unique_ptr<LimitedFakeGpu>> limited_;
};

TEST_P(GpuTowersSessionTest, WithLittleMemoryTheStageHoldsFewerRecords) {
  SetFakeGpuDelay(absl::Microseconds(100));
  for (int records = kCapacity; records > 0; --records) {
    SCOPED_TRACE(records);
    const LimitedGpus limited(session_.get(), gpus(), records);
    StartStage();
    for (int64_t record = 0; record < 50; ++record) {
      ExpectStep(record);
      if (HasFatalFailure()) return;
    }
    BufferStats stats;
    ASSERT_EQ(runner_->ReadBuffer(&stats), OkStatus());
    EXPECT_GT(stats.kept_on_host(), 0);
    EXPECT_LT(stats.capacity(), kCapacity);
    EXPECT_GE(stats.capacity(), 1);
    runner_.reset();
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }
}

// What is on the host for want of memory is rolled back like any other record.
TEST_P(GpuTowersSessionTest, AnInitializerRollsBackWhatFoundNoMemory) {
  const LimitedGpus limited(session_.get(), gpus(), /*records=*/2);
  StartStage();
  for (int round = 0; round < 5; ++round) {
    for (int64_t record = 0; record < 5; ++record) {
      ExpectStep(record);
      if (HasFatalFailure()) return;
    }
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }
}

// The records that wait are stale then.
TEST_P(GpuTowersSessionTest, AnInitializerRollsSharesBack) {
  StartStage();
  for (int round = 0; round < 5; ++round) {
    for (int64_t record = 0; record < 5; ++record) {
      ExpectStep(record);
      if (HasFatalFailure()) return;
    }
    AwaitFullBuffer(runner_.get());
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }
}

TEST_P(GpuTowersSessionTest, ASessionEndsWhileCopiesAreQueued) {
  std::vector<std::unique_ptr<StoppedFakeGpu>> stopped;
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    stopped.push_back(
        std::make_unique<StoppedFakeGpu>(FakeGpu::Of(session_.get(), gpu)));
  }
  StartStage();
  AwaitFullBuffer(runner_.get());
  runner_.reset();
  TF_CHECK_OK(session_->Close());
  session_.reset();
}

// What a step that fails has taken is given back, on each GPU. The last test, since
// memory of such a step may stay in use: TensorFlow's rendezvous may keep for ever
// what an op sends while another one ends the step.
TEST_P(GpuTowersSessionTest, FailingStepsKeepNoMemory) {
  StartStage();
  const auto run = [this](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      if (i % 3 == 0) {
        ExpectStep(i);
        continue;
      }
      const Status status =
          session_->Run({}, {}, AllTowers({Failure(i % gpus())}), nullptr);
      ASSERT_TRUE(errors::IsInvalidArgument(status)) << status;
    }
  };
  const auto peak = [this](int gpu) {
    return FakeGpu::Of(session_.get(), gpu)->peak_bytes();
  };
  run(0, 60);
  std::vector<int64_t> before;
  for (int gpu = 0; gpu < gpus(); ++gpu) before.push_back(peak(gpu));
  run(60, 600);
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    // A loan may end late, when a thread is not scheduled.
    EXPECT_LE(peak(gpu), 4 * before[gpu]) << gpu;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
