// SPDX-License-Identifier: Apache-2.0
//
// Any client of a server can send any graph. Takes graphs with stages, changes
// attributes that staging writes or reads, or the edges and nodes, and passes
// the graphs to everything that reads them: each has to return a result or an
// error. A crash ends this program; the last line of its log has the seed of
// the graph.

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstdint>
#include <memory>
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
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/place/give_shares.h"
#include "tensorflow_staging/core/graph/place/stage_delivery.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/graph/run/graph_for_run.h"
#include "tensorflow_staging/core/testing/chance.h"
#include "tensorflow_staging/core/testing/lookup_graph.h"
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

// Returns a random graph with stages, most of the time after the rewrite.
GraphDef MakeGraph(int seed, Chance* chance) {
  LookupGraph graph;
  RandomGraph random(seed, &graph);
  std::vector<Node*> iterators;
  Node* next = nullptr;
  for (Node* node : graph.get()->op_nodes()) {
    if (node->type_string() == "IteratorV2") iterators.push_back(node);
    if (node->type_string() == "IteratorGetNext") next = node;
  }
  if (next != nullptr && chance->Below(2) == 0) graph.AddStep(next);
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
    options.buffer.stream_id = chance->Below(2);
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

// Changes up to three nodes: an input comes from elsewhere, is missing or is
// there twice, the node has another op or another name, or does not exist. Most
// such graphs have cycles, inputs of wrong types or nodes without their inputs.
//
// Merges keep their inputs: TensorFlow's graph constructor ends the process if
// one of a loop has two inputs from outside of the loop.
void ChangeNodes(GraphDef* graph, Chance* chance) {
  for (int i = chance->Below(3); i >= 0; --i) {
    const int index = chance->Below(graph->node_size());
    NodeDef* node = graph->mutable_node(index);
    if (node->op() == "Merge" || node->op() == "NextIteration") continue;
    const std::string other = chance->NodeName(*graph);
    switch (chance->Below(7)) {
      case 0:
        node->add_input(absl::StrCat("^", other));
        break;
      case 1:
        node->add_input(other);
        break;
      case 2:
        if (node->input_size() > 0) node->mutable_input()->RemoveLast();
        break;
      case 3: {
        const std::string op =
            graph->node(chance->Below(graph->node_size())).op();
        if (op != "Merge") node->set_op(op);
        break;
      }
      case 4:
        node->set_name(chance->Text(*graph));
        break;
      case 5:
        if (graph->node_size() > 1)
          graph->mutable_node()->DeleteSubrange(index, 1);
        break;
      default:
        if (node->input_size() > 0) {
          *node->mutable_input(chance->Below(node->input_size())) =
              absl::StrCat(other, ":", chance->Below(3));
        }
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

class MalformedGraphsTest : public ::testing::Test {
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
      if (IsBufferPut(*node)) node->AddAttr(kDeliversAttr, true);
    }
    PlacesOfStages places;
    Count(PlaceRecords(&places, &placed));
    Count(GiveShares(/*is_function=*/false, &placed));

    const StagePlan plan(graph, /*smart_stage=*/chance->Below(4) > 0, "");
    RewriteOptions options;
    options.on_cpu = chance->Below(2) == 0;
    options.session = "session";
    const Status staged = RewriteStages(plan, options, &graph);
    Count(staged);
    if (!staged.ok()) return;
    const StaleReads stale(graph);
    options.beside_take = true;
    const StagePlan lookups(graph, stale, "lookups");
    Count(RewriteStages(lookups, options, &graph));
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

TEST_F(MalformedGraphsTest, AttributesGiveAResultOrAnError) {
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

TEST_F(MalformedGraphsTest, NodesGiveAResultOrAnError) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    fprintf(stderr, "seed %d\n", seed);
    Chance chance(seed);
    GraphDef graph = MakeGraph(seed, &chance);
    ChangeNodes(&graph, &chance);
    if (chance.Below(4) == 0) ChangeAttributes(&graph, &chance);
    Read(graph, &chance);
  }
  EXPECT_GT(accepted_, kGraphs);
  EXPECT_GT(refused_, kGraphs / 4);
}

TEST_F(MalformedGraphsTest, AStandInWithoutAnIndexForItsInputIsRefused) {
  TestGraph graph;
  Node* take = graph.Stage("stage", {graph.Source("next", 2)});
  for (Node* node : graph.get()->op_nodes()) {
    if (IsBufferPut(*node)) node->AddAttr(kDeliversAttr, true);
  }
  for (const std::vector<int>& indices :
       std::vector<std::vector<int>>{{}, {0}, {0, -1}, {0, 100000000}}) {
    Node* sum = graph.AddN(absl::StrCat("sum_", indices.size(),
                                        indices.empty() ? 0 : indices.back()),
                           {take, take});
    MarkStandIn("stage", sum);
    if (!indices.empty()) sum->AddAttr(kIndicesAttr, indices);
    PlacesOfStages places;
    const Status status = PlaceRecords(&places, graph.get());
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), sum->name())) << status;
    graph.get()->RemoveNode(sum);
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
