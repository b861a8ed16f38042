// SPDX-License-Identifier: Apache-2.0
//
// Any client of a server can send any attribute. Takes graphs with stages,
// changes attributes that staging writes or reads, and passes the graphs to
// everything that reads them: each has to return a result or an error. A crash
// ends this program; the last line of its log has the seed of the graph.

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"
#include "tensorflow_staging/core/graph/rewrite/stage_delivery.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/graph/run/graph_for_run.h"
#include "tensorflow_staging/core/testing/random_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kGraphs = 3000;
constexpr int kRuns = 6;

constexpr const char* kAttrs[] = {kMarkedStageAttr,
                                  kStandInAttr,
                                  kOriginalAttr,
                                  kTakenInputsAttr,
                                  kCopyOfAttr,
                                  kTargetAttr,
                                  kStreamAttr,
                                  kIndicesAttr,
                                  kStageNameAttr,
                                  kContainerAttr,
                                  kSharedNameAttr,
                                  kCapacityAttr,
                                  kCapacityBytesAttr,
                                  kTimeoutMillisAttr,
                                  "dtypes",
                                  "shapes",
                                  "_class"};

constexpr const char* kDevices[] = {
    "", "/job:localhost/replica:0/task:0/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:0", "no device"};

// Chooses everything that a test leaves to chance.
class Chance {
 public:
  explicit Chance(int seed) : random_(seed) {}

  int Below(int bound) { return random_() % bound; }

  template <typename T, size_t size>
  const T& Of(const T (&values)[size]) {
    return values[Below(size)];
  }

  int64_t Int() {
    static constexpr int64_t kInts[] = {-2,
                                        -1,
                                        0,
                                        1,
                                        2,
                                        7,
                                        100000000,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
    return Of(kInts);
  }

  DataType Type() {
    static constexpr DataType kTypes[] = {DT_INVALID, DT_INT64, DT_STRING,
                                          DT_RESOURCE, DT_INT64_REF};
    return Of(kTypes);
  }

  std::string NodeName(const GraphDef& graph) {
    return graph.node(Below(graph.node_size())).name();
  }

  std::string Text(const GraphDef& graph) {
    static const std::string* const kTexts[] = {
        new std::string(""),          new std::string("prefetch"),
        new std::string("/"),         new std::string("loc:@nobody"),
        new std::string("a:b:c"),     new std::string("^x"),
        new std::string("\xff\0x", 3)};
    return Below(2) == 0 ? NodeName(graph) : *Of(kTexts);
  }

  AttrValue Value(const GraphDef& graph) {
    AttrValue value;
    const int entries = Below(4);
    switch (Below(13)) {
      case 0:
        value.set_s(Text(graph));
        break;
      case 1:
        value.set_i(Int());
        break;
      case 2:
        value.set_b(Below(2) == 0);
        break;
      case 3:
        value.set_f(1.5);
        break;
      case 4:
        value.set_type(Type());
        break;
      case 5:
        value.mutable_shape()->add_dim()->set_size(Int());
        break;
      case 6:
        value.mutable_tensor()->set_dtype(Type());
        break;
      case 7:
        value.mutable_func()->set_name(Text(graph));
        break;
      case 8:
        value.set_placeholder(Text(graph));
        break;
      case 9:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) value.mutable_list()->add_i(Int());
        break;
      case 10:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) {
          value.mutable_list()->add_type(Type());
        }
        break;
      case 11:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) {
          value.mutable_list()->add_s(Text(graph));
        }
        break;
      default:
        break;  // An attribute without a value.
    }
    return value;
  }

 private:
  std::mt19937 random_;
};

// Returns a random graph with stages, most of the time after the rewrite.
GraphDef MakeGraph(int seed, Chance* chance) {
  TestGraph graph;
  RandomGraph random(seed, &graph);
  std::vector<Node*> iterators;
  for (Node* node : graph.get()->op_nodes()) {
    if (node->type_string() == "IteratorV2") iterators.push_back(node);
  }
  for (Node* iterator : iterators) {
    // An iterator of several components does not fit the range, but no one
    // runs this.
    if (chance->Below(2) == 0) {
      graph.InitializeWithRange(absl::StrCat("init_", iterator->name()),
                                iterator, 0, 3);
    }
  }
  if (chance->Below(8) > 0) {
    const StagePlan plan(*graph.get(), /*smart_stage=*/true, /*name=*/"");
    RewriteOptions options;
    options.on_cpu = chance->Below(2) == 0;
    if (chance->Below(2) == 0) options.session = "session";
    options.stream_id = chance->Below(2);
    EXPECT_EQ(RewriteStages(plan, options, graph.get()), OkStatus());
  }
  GraphDef def;
  graph.get()->ToGraphDef(&def);
  return def;
}

// Changes up to three attributes: removes one, gives it another value, or the
// value that another node has.
void ChangeAttributes(GraphDef* graph, Chance* chance) {
  // Nodes that have such an attribute, each once for each, so that most changes
  // concern what staging reads.
  std::vector<std::pair<NodeDef*, std::string>> present;
  for (NodeDef& node : *graph->mutable_node()) {
    for (const char* attr : kAttrs) {
      if (node.attr().count(attr) > 0) present.emplace_back(&node, attr);
    }
  }
  for (int i = chance->Below(3); i >= 0; --i) {
    NodeDef* node = graph->mutable_node(chance->Below(graph->node_size()));
    std::string attr = chance->Of(kAttrs);
    if (!present.empty() && chance->Below(4) > 0) {
      std::tie(node, attr) = present[chance->Below(present.size())];
    }
    switch (chance->Below(4)) {
      case 0:
        node->mutable_attr()->erase(attr);
        break;
      case 1:
        if (!present.empty()) {
          const auto& [other, name] = present[chance->Below(present.size())];
          // A copy, because the map may move its values.
          const AttrValue value = other->attr().count(name) > 0
                                      ? other->attr().at(name)
                                      : AttrValue();
          (*node->mutable_attr())[name] = value;
        }
        break;
      default:
        (*node->mutable_attr())[attr] = chance->Value(*graph);
    }
  }
}

CallableOptions MakeRun(const GraphDef& graph, Chance* chance) {
  const auto tensor = [&] {
    return absl::StrCat(chance->NodeName(graph), ":", chance->Below(3));
  };
  CallableOptions run;
  for (int i = chance->Below(3); i > 0; --i) run.add_feed(tensor());
  for (int i = chance->Below(3); i > 0; --i) run.add_fetch(tensor());
  for (int i = chance->Below(2); i > 0; --i) {
    run.add_target(chance->NodeName(graph));
  }
  if (chance->Below(4) == 0) {
    TensorConnection* connection = run.add_tensor_connection();
    connection->set_from_tensor(tensor());
    connection->set_to_tensor(tensor());
  }
  return run;
}

class MalformedAttributesTest : public ::testing::Test {
 protected:
  // Counts one result.
  void Count(const Status& status) { ++(status.ok() ? accepted_ : refused_); }

  // Passes a graph to all that read it.
  void Read(const GraphDef& def, Chance* chance) {
    Graph graph(OpRegistry::Global());
    const Status valid =
        ConvertGraphDefToGraph(GraphConstructorOptions(), def, &graph);
    Count(valid);
    if (!valid.ok()) return;
    for (const int64_t stale_steps : {0, 2}) {
      ReportOptions options;
      options.stale_steps = stale_steps;
      StageReport report;
      Count(ReportStages(graph, options, &report));
    }
    for (int i = 0; i < kRuns; ++i) {
      std::unique_ptr<Graph> run_graph;
      Count(FindGraphForRun(graph, MakeRun(def, chance), &run_graph));
    }
    MakeKernels(graph);

    Graph placed(OpRegistry::Global());
    placed.Copy(graph);
    for (Node* node : placed.op_nodes()) {
      node->set_assigned_device_name(chance->Of(kDevices));
    }
    Count(DeliverToConsumers(&placed));

    const StagePlan plan(graph, /*smart_stage=*/chance->Below(4) > 0, "");
    RewriteOptions options;
    options.on_cpu = chance->Below(2) == 0;
    options.session = "session";
    Count(RewriteStages(plan, options, &graph));
  }

  void MakeKernels(const Graph& graph) {
    for (const Node* node : graph.op_nodes()) {
      if (!IsBufferOp(*node) && node->type_string() != kStagedNodeOp) continue;
      Status status;
      CreateOpKernel(DEVICE_CPU, device_.get(),
                     device_->GetAllocator(AllocatorAttributes()), node->def(),
                     TF_GRAPH_DEF_VERSION, &status);
      Count(status);
    }
  }

  const std::unique_ptr<Device> device_ = DeviceFactory::NewDevice(
      "CPU", SessionOptions(), "/job:localhost/replica:0/task:0");
  int accepted_ = 0;
  int refused_ = 0;
};

TEST_F(MalformedAttributesTest, GiveAResultOrAnError) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    fprintf(stderr, "seed %d\n", seed);
    Chance chance(seed);
    GraphDef graph = MakeGraph(seed, &chance);
    ChangeAttributes(&graph, &chance);
    Read(graph, &chance);
  }
  // The changes are neither all harmless nor all found before staging looks.
  EXPECT_GT(accepted_, kGraphs);
  EXPECT_GT(refused_, kGraphs / 4);
}

TEST_F(MalformedAttributesTest, AStandInWithoutAnIndexForItsInputIsRefused) {
  TestGraph graph;
  Node* take = graph.Stage("stage", {graph.Source("next", 2)});
  for (const std::vector<int>& indices :
       std::vector<std::vector<int>>{{}, {0}, {0, -1}, {0, 100000000}}) {
    Node* sum = graph.AddN(absl::StrCat("sum_", indices.size(),
                                        indices.empty() ? 0 : indices.back()),
                           {take, take});
    MarkStandIn("stage", sum);
    if (!indices.empty()) sum->AddAttr(kIndicesAttr, indices);
    const Status status = DeliverToConsumers(graph.get());
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), sum->name())) << status;
    graph.get()->RemoveNode(sum);
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
