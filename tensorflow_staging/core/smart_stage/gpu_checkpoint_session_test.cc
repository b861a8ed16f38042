// SPDX-License-Identifier: Apache-2.0
//
// Tests in sessions with fake GPUs that a checkpoint has what the records were
// made from that are in the memory of a GPU.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"
#include "tensorflow_staging/core/testing/full_buffer.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/local_server.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kCpu[] = "/device:CPU:0";
constexpr char kGpu[] = "/device:GPU:0";
constexpr int kCapacity = 4;

void Add(NodeDefBuilder builder, GraphDef* graph) {
  StageTestGraph::Add(builder, graph);
}

NodeDefBuilder Linear(const std::string& name, const std::string& input) {
  return NodeDefBuilder(name, "StagingTestLinear")
      .Input(std::vector<NodeDefBuilder::NodeOut>{{input, 0, DT_INT64}});
}

// What differs between trainings: the n-th step of each yields 10 * (n + 1) as
// `result`.
struct Model {
  std::string name;
  int gpus = 1;
  int streams = 1;
  // Adds what is between `record` and `result`, apart from a stage of
  // tf.staged, and returns the node that is staged.
  std::string (*add_region)(GraphDef* graph);
  // Adds what uses the stage's record. Null if SmartStage finds the stage.
  void (*add_step)(const std::string& take, GraphDef* graph);
  // Of the ops around the buffer.
  std::string device;
  DataType staged = DT_INT64;
  bool on_server = false;
};

// Adds record --> upload --> prepared on `device`, where prepared is record
// + 1.
std::string AddPrepared(const std::string& device, GraphDef* graph) {
  Add(NodeDefBuilder("upload", "StagingTestUpload")
          .Input("record", 0, DT_INT64)
          .Device(device),
      graph);
  Add(Linear("prepared", "upload").Attr("offset", 1).Device(device), graph);
  return "prepared";
}

void AddTenfold(const std::string& take, GraphDef* graph) {
  Add(Linear("result", take).Attr("scale", 10).Device(kGpu), graph);
}

// The variant is in host memory, and refers to a tensor in that of the GPU.
std::string AddList(GraphDef* graph) {
  Add(NodeDefBuilder("vector", "Pack")
          .Input(std::vector<NodeDefBuilder::NodeOut>{{"record", 0, DT_INT64}})
          .Device(kCpu),
      graph);
  Add(StageTestGraph::Const("scalar", Tensor(DT_INT32, TensorShape({0})))
          .Device(kCpu),
      graph);
  Add(NodeDefBuilder("list", "TensorListFromTensor")
          .Input("vector", 0, DT_INT64)
          .Input("scalar", 0, DT_INT32)
          .Device(kCpu),
      graph);
  return "list";
}

void AddUseOfList(const std::string& take, GraphDef* graph) {
  Add(StageTestGraph::Const("index", Tensor(int32{0})).Device(kCpu), graph);
  Add(NodeDefBuilder("item", "TensorListGetItem")
          .Input(take, 0, DT_VARIANT)
          .Input("index", 0, DT_INT32)
          .Input("scalar", 0, DT_INT32)
          .Attr("element_dtype", DT_INT64)
          .Device(kCpu),
      graph);
  Add(Linear("result", "item")
          .Attr("scale", 10)
          .Attr("offset", 10)
          .Device(kCpu),
      graph);
}

// SmartStage carries `record`, which the step uses on the GPU, and `text`,
// which it uses on the host.
std::string AddSmartModel(GraphDef* graph) {
  Add(NodeDefBuilder("text", "AsString")
          .Input("record", 0, DT_INT64)
          .Device(kCpu),
      graph);
  Add(NodeDefBuilder("length", "StringLength")
          .Input("text", 0, DT_STRING)
          .Attr(kTargetAttr, true),
      graph);
  Add(Linear("result", "record")
          .Attr("scale", 10)
          .Attr("offset", 10)
          .Attr(kTargetAttr, true)
          .Device(kGpu),
      graph);
  return "";
}

// Several streams of a GPU, and a number of GPUs for each session, are only for
// local sessions.
std::vector<Model> WithServers(std::vector<Model> models) {
  const size_t local = models.size();
  for (size_t i = 0; i < local; ++i) {
    if (models[i].gpus > 1 || models[i].streams > 1) continue;
    models.push_back(models[i]);
    models.back().name += "OfAServer";
    models.back().on_server = true;
  }
  return models;
}

const std::vector<Model>& Models() {
  static const auto* const kModels = new std::vector<Model>(WithServers({
      {"OnTheStreamOfTheStep", 1, 1,
       [](GraphDef* graph) { return AddPrepared(kGpu, graph); }, AddTenfold,
       kGpu},
      {"LentToAnotherStream", 1, 2,
       [](GraphDef* graph) { return AddPrepared("/device:GPU:1", graph); },
       AddTenfold, "/device:GPU:1"},
      {"OnAnotherGpu", 2, 2,
       [](GraphDef* graph) { return AddPrepared("/device:GPU:1", graph); },
       AddTenfold, "/device:GPU:1"},
      {"InVariants", 1, 1, AddList, AddUseOfList, kGpu, DT_VARIANT},
      {"CopiedByThePutOfSmartStage", 1, 1, AddSmartModel, nullptr},
  }));
  return *kModels;
}

// What a checkpoint makes of `saved`.
Tensor ThroughAFile(const Tensor& saved) {
  TensorProto proto;
  saved.AsProtoField(&proto);
  TensorProto stored;
  CHECK(stored.ParseFromString(proto.SerializeAsString()));
  Tensor read;
  CHECK(read.FromProto(stored));
  return read;
}

// Of how many elements a saved position says that no step has used them.
int NumUnused(const Tensor& saved) {
  std::vector<const VariantTensorData*> entries;
  const auto elements = saved.vec<Variant>();
  for (int64_t i = 0; i < elements.size(); ++i) {
    entries.push_back(elements(i).get<data::IteratorStateVariant>()->GetData());
  }
  data::VariantTensorDataReader reader(entries);
  SavedState state;
  TF_CHECK_OK(Read(&reader, &state));
  return state.outcomes.size();
}

// A session that trains a model, and its stage.
class Training {
 public:
  explicit Training(const Model& model, int64_t capacity = kCapacity)
      : model_(model), capacity_(capacity) {
    SetFakeGpuCount(model.gpus);
    SessionOptions options;
    if (model.on_server) {
      options.target = LocalServerTarget();
    } else {
      options = OptionsWithStreams(model.gpus, model.streams);
    }
    if (IsSmart()) {
      OptimizerFields fields;
      fields.set_do_smart_stage(true);
      fields.set_stage_subgraph_on_cpu(true);
      fields.mutable_smart_stage_options()->set_capacity(capacity);
      CHECK(options.config.mutable_graph_options()
                ->mutable_optimizer_options()
                ->MergeFromString(fields.SerializeAsString()));
    }
    session_.reset(NewSession(options));
    SetFakeGpuCount(1);
    TF_CHECK_OK(session_->Create(NewGraph()));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
  }

  ~Training() { TF_CHECK_OK(session_->Close()); }

  FakeGpu* Gpu(int index) { return FakeGpu::Of(session_.get(), index); }

  void StartStage() {
    PrefetchRunnerOptions options;
    if (IsSmart()) {
      std::vector<PrefetchRunnerOptions> runners;
      TF_CHECK_OK(FindRunnersOfSession(session_.get(), {}, &runners));
      ASSERT_EQ(runners.size(), 1);
      options = runners[0];
    } else {
      options = RunnerOptionsOf(Stage());
      options.add_fetch_ops(Stage().Node(kPutOp));
    }
    TF_CHECK_OK(PrefetchRunner::Create(session_, options, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  // Runs the steps of the records from `begin` to `end` - 1.
  void RunSteps(int64_t begin, int64_t end) {
    for (int64_t record = begin; record < end; ++record) {
      std::vector<std::string> fetches = {"result"};
      if (IsSmart()) fetches.push_back("text");
      std::vector<Tensor> outputs;
      ASSERT_EQ(session_->Run({}, fetches, {}, &outputs), OkStatus());
      ASSERT_EQ(outputs[0].scalar<int64_t>()(), 10 * (record + 1));
      if (!IsSmart()) continue;
      ASSERT_EQ(outputs[1].scalar<tstring>()(), absl::StrCat(record));
    }
  }

  // Waits until the buffer is full behind `taken` steps.
  void AwaitFullBuffer(int64_t taken) {
    AwaitRecords(*runner_, taken + capacity_);
  }

  Tensor Save() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"position"}, {}, &outputs));
    return ThroughAFile(outputs[0]);
  }

  void Restore(const Tensor& saved) {
    ASSERT_EQ(session_->Run({{"saved", saved}}, {}, {"restore"}, nullptr),
              OkStatus());
  }

 private:
  bool IsSmart() const { return model_.add_step == nullptr; }

  StageTestGraph Stage() const {
    StageTestGraph stage;
    stage.capacity = capacity_;
    return stage;
  }

  GraphDef NewGraph() const {
    GraphDef graph;
    AddRangeSource(/*stop=*/int64_t{1} << 40, &graph);
    Add(NodeDefBuilder("position", "SerializeIterator")
            .Input("iterator", 0, DT_RESOURCE)
            .Device(kCpu),
        &graph);
    Add(NodeDefBuilder("saved", "Placeholder")
            .Attr("dtype", DT_VARIANT)
            .Device(kCpu),
        &graph);
    Add(NodeDefBuilder("restore", "DeserializeIterator")
            .Input("iterator", 0, DT_RESOURCE)
            .Input("saved", 0, DT_VARIANT)
            .Device(kCpu),
        &graph);
    const std::string staged = model_.add_region(&graph);
    if (IsSmart()) return graph;
    Stage().AddTo(&graph, staged);
    for (NodeDef& node : *graph.mutable_node()) {
      if (!absl::StrContains(node.op(), "TensorBuffer")) continue;
      node.set_device(model_.device);
      if (node.op() == kPutOp || node.op() == kTakeOp) {
        SetAttrValue(DataTypeVector{model_.staged},
                     &(*node.mutable_attr())[kDtypesAttr]);
      }
    }
    model_.add_step(Stage().Node(kTakeOp), &graph);
    return graph;
  }

  const Model model_;
  const int64_t capacity_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

class GpuCheckpointTest : public ::testing::TestWithParam<Model> {
 protected:
  GpuCheckpointTest() { SetFakeGpuDelay(absl::Microseconds(200)); }
  ~GpuCheckpointTest() override { SetFakeGpuDelay(absl::ZeroDuration()); }
};

TEST_P(GpuCheckpointTest, TrainingResumesWithExactlyTheNextRecord) {
  Tensor saved;
  {
    Training training(GetParam());
    training.StartStage();
    training.RunSteps(0, 5);
    training.AwaitFullBuffer(5);
    saved = training.Save();
    EXPECT_GE(NumUnused(saved), kCapacity);
    training.RunSteps(5, 12);
  }
  Training training(GetParam(), /*capacity=*/2);
  training.Restore(saved);
  training.StartStage();
  training.RunSteps(5, 30);
  // Goes back while the stage runs.
  training.Restore(saved);
  training.RunSteps(5, 20);
}

TEST_P(GpuCheckpointTest, WhatIsRestoredCanBeSavedBeforeTheStageStarts) {
  Tensor saved;
  {
    Training training(GetParam());
    training.StartStage();
    training.RunSteps(0, 3);
    training.AwaitFullBuffer(3);
    saved = training.Save();
  }
  {
    Training training(GetParam());
    training.Restore(saved);
    const int unused = NumUnused(saved);
    saved = training.Save();
    EXPECT_EQ(NumUnused(saved), unused);
  }
  Training training(GetParam());
  training.Restore(saved);
  training.StartStage();
  training.RunSteps(3, 20);
}

// A record may be in the buffer before it has been copied to the GPU, or made
// there.
TEST_P(GpuCheckpointTest, ASaveWaitsForNoGpu) {
  // The GPUs of a server belong to it.
  if (GetParam().on_server) GTEST_SKIP();
  Tensor saved;
  {
    Training training(GetParam());
    training.StartStage();
    training.RunSteps(0, 5);
    training.AwaitFullBuffer(5);
    StoppedFakeGpu stopped(training.Gpu(GetParam().gpus - 1));
    saved = training.Save();
    stopped.Release();
    training.RunSteps(5, 12);
  }
  Training training(GetParam());
  training.Restore(saved);
  training.StartStage();
  training.RunSteps(5, 20);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuCheckpointTest,
                         ::testing::ValuesIn(Models()),
                         [](const ::testing::TestParamInfo<Model>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace staging
}  // namespace tensorflow
