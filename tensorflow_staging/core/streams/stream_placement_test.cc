// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/stream_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/streams/requested_streams.h"
#include "tensorflow_staging/core/streams/stream_settings.h"
#include "tensorflow_staging/core/testing/test_graph.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTask[] = "/job:localhost/replica:0/task:0/device:";

// A graph in a session with `kGpus` GPUs of three streams each. Nodes are on
// GPU:0 unless a test places them elsewhere.
class StreamPlacementTest : public ::testing::Test {
 protected:
  static constexpr int kGpus = 2;

  StreamPlacementTest() {
    settings_.enabled = true;
    settings_.streams = 3;
    settings_.stages = true;
  }

  // Creates `node` in tf.stream(`stream`).
  static Node* In(int stream, Node* node) {
    node->AddAttr(kStreamAttr, stream);
    return node;
  }

  static Node* On(const std::string& device, Node* node) {
    node->set_assigned_device_name(kTask + device);
    return node;
  }

  static Node* Colocated(const Node* with, Node* node) {
    node->AddAttr(kColocationAttrName,
                  std::vector<std::string>{
                      absl::StrCat(kColocationGroupPrefix, with->name())});
    return node;
  }

  Node* Add(NodeBuilder builder) { return graph_.Finalize(&builder); }

  Node* VarHandle(const std::string& name) {
    return Add(NodeBuilder(name, "VarHandleOp")
                   .Attr("dtype", DT_INT64)
                   .Attr("shape", TensorShape()));
  }

  Node* Read(const std::string& name, Node* variable) {
    return Add(NodeBuilder(name, "ReadVariableOp")
                   .Input(variable)
                   .Attr("dtype", DT_INT64));
  }

  Node* Assign(const std::string& name, Node* variable, Node* value) {
    return Add(
        NodeBuilder(name, "AssignVariableOp").Input(variable).Input(value));
  }

  // A stage as tf.staged creates it: Take and Put are colocated.
  Node* Put(const std::string& stage, const TestGraph::Outs& record) {
    return Add(NodeBuilder(stage + "/put", kPutOp)
                   .Attr(kSharedNameAttr, stage)
                   .Attr(kContainerAttr, "")
                   .Input(record));
  }

  Node* Take(const std::string& stage) {
    return Add(NodeBuilder(stage + "/take", kTakeOp)
                   .Attr(kSharedNameAttr, stage)
                   .Attr(kContainerAttr, "")
                   .Attr(kDtypesAttr, DataTypeVector{DT_INT64})
                   .Attr(kColocationAttrName,
                         std::vector<std::string>{absl::StrCat(
                             kColocationGroupPrefix, stage, "/put")}));
  }

  Status Place() {
    for (Node* node : graph_.get()->op_nodes()) {
      if (!node->has_assigned_device_name()) On("GPU:0", node);
    }
    RequestedStreams requested;
    TF_RETURN_IF_ERROR(
        ReadRequestedStreams(settings_, *graph_.get(), &requested));
    PlaceOnStreams(kGpus, requested, graph_.get());
    return OkStatus();
  }

  // Returns the devices of nodes, without their task.
  std::vector<std::string> Devices(const std::vector<std::string>& names) {
    std::vector<std::string> devices;
    for (const std::string& name : names) {
      const std::string device =
          FindNode(*graph_.get(), name)->assigned_device_name();
      devices.push_back(device.substr(device.rfind('/') + 8));
    }
    return devices;
  }

  StreamSettings settings_;
  TestGraph graph_;
};

TEST_F(StreamPlacementTest, NodesMoveToTheirStreamOnTheSameGpu) {
  In(1, graph_.Const("a", 1));
  On("GPU:1", In(1, graph_.Const("b", 1)));
  In(2, graph_.Const("c", 1));
  On("GPU:1", In(2, graph_.Const("d", 1)));
  In(0, graph_.Const("e", 1));
  On("GPU:1", graph_.Const("f", 1));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(
      Devices({"a", "b", "c", "d", "e", "f"}),
      ElementsAre("GPU:2", "GPU:3", "GPU:4", "GPU:5", "GPU:0", "GPU:1"));
}

TEST_F(StreamPlacementTest, NodesOnOtherDevicesStay) {
  On("CPU:0", In(1, graph_.Const("cpu", 1)));
  // tf.device has named the device of stream 1 of GPU 1.
  On("GPU:3", In(2, graph_.Const("named", 1)));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"cpu", "named"}), ElementsAre("CPU:0", "GPU:3"));
}

// As gradients that are computed outside of a scope.
TEST_F(StreamPlacementTest, ANodeOutsideOfScopesIsOnStream0) {
  graph_.Neg("gradient", In(1, graph_.Const("a", 1)));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "gradient"}), ElementsAre("GPU:2", "GPU:0"));
}

TEST_F(StreamPlacementTest, ColocatedNodesFollow) {
  Node* a = In(1, graph_.Const("a", 1));
  Node* b = graph_.Const("b", 1);
  Colocated(a, graph_.Const("on_a", 1));
  Colocated(a, In(2, graph_.Const("on_a_in_2", 1)));
  Colocated(b, In(2, graph_.Const("on_b_in_2", 1)));
  // With itself, as variables are.
  Node* c = In(2, graph_.Const("c", 1));
  Colocated(c, c);
  Colocated(c, graph_.Const("on_c", 1));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "on_a", "on_a_in_2"}),
              ElementsAre("GPU:2", "GPU:2", "GPU:2"));
  EXPECT_THAT(Devices({"b", "on_b_in_2"}), ElementsAre("GPU:0", "GPU:0"));
  EXPECT_THAT(Devices({"c", "on_c"}), ElementsAre("GPU:4", "GPU:4"));
}

// TensorFlow's placer has put them on different devices.
TEST_F(StreamPlacementTest, AColocationAcrossDevicesHasNoEffect) {
  Node* a = On("CPU:0", In(1, graph_.Const("a", 1)));
  Colocated(a, graph_.Const("on_a", 1));
  graph_.Const("lonely", 1)
      ->AddAttr(kColocationAttrName, std::vector<std::string>{"loc:@absent"});
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "on_a", "lonely"}),
              ElementsAre("CPU:0", "GPU:0", "GPU:0"));
}

TEST_F(StreamPlacementTest, TheOpsOfAVariableStayOnItsStream) {
  Node* variable = In(1, VarHandle("variable"));
  Node* slot = Colocated(variable, In(0, VarHandle("a_slot")));
  Read("read", variable);
  In(2, Read("read_in_2", variable));
  Assign("assign", variable, graph_.Const("value", 1));
  Read("read_slot", slot);
  Node* other = VarHandle("other");
  In(1, Read("read_other_in_1", other));
  ASSERT_EQ(Place(), OkStatus());
  for (const char* name :
       {"variable", "a_slot", "read", "read_in_2", "assign", "read_slot"}) {
    EXPECT_THAT(Devices({name}), ElementsAre("GPU:2")) << name;
  }
  EXPECT_THAT(Devices({"value", "other", "read_other_in_1"}),
              ElementsAre("GPU:0", "GPU:0", "GPU:0"));
}

TEST_F(StreamPlacementTest, TheOpsOfAReferenceStayOnItsStream) {
  Node* variable = In(2, Add(NodeBuilder("variable", "VariableV2")
                                 .Attr("dtype", DT_INT64)
                                 .Attr("shape", TensorShape())));
  Node* value = graph_.Const("value", 1);
  Add(NodeBuilder("assign", "Assign").Input(variable).Input(value));
  // Reads a value.
  In(1, graph_.Identity("read", variable));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"variable", "assign", "value", "read"}),
              ElementsAre("GPU:4", "GPU:4", "GPU:0", "GPU:2"));
}

// Its function reads the variables wherever they are.
TEST_F(StreamPlacementTest, AFunctionDoesNotJoinTheVariablesThatItTakes) {
  Node* a = In(1, VarHandle("a"));
  Node* b = In(2, VarHandle("b"));
  NameAttrList function;
  function.set_name("f");
  Add(NodeBuilder("call", "StatefulPartitionedCall")
          .Input(TestGraph::Outs{a, b})
          .Attr("Tout", DataTypeVector{DT_INT64})
          .Attr("f", function));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "b", "call"}),
              ElementsAre("GPU:2", "GPU:4", "GPU:0"));
}

TEST_F(StreamPlacementTest, BothEndsOfALoopsBackEdgeAreOnOneStream) {
  Node* enter = Add(NodeBuilder("enter", "Enter")
                        .Input(graph_.Const("start", 1))
                        .Attr("frame_name", "loop"));
  Node* merge = In(1, graph_.Merge("merge", {enter, enter}));
  Node* next = In(2, Add(NodeBuilder("a_next", "NextIteration")
                             .Input(graph_.Neg("body", merge))));
  TF_CHECK_OK(graph_.get()->UpdateEdge(next, 0, merge, 1));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"merge", "a_next", "body"}),
              ElementsAre("GPU:2", "GPU:2", "GPU:0"));
}

// HandOverRecords moves the Take.
TEST_F(StreamPlacementTest, ARegionMovesToTheStreamOfItsStage) {
  Node* source = graph_.Const("source", 1);
  Node* hash = In(2, graph_.Neg("hash", source));
  In(1, Put("stage", {hash}));
  graph_.Neg("loss", Take("stage"));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"source", "hash", "stage/put", "stage/take", "loss"}),
              ElementsAre("GPU:2", "GPU:2", "GPU:2", "GPU:2", "GPU:0"));
}

TEST_F(StreamPlacementTest, RecordsAreOnTheStreamOfTheStage) {
  In(1, Put("stage", {graph_.Const("source", 1)}));
  In(2, Take("stage"));
  // It asks for no stream.
  In(0, Put("other", {graph_.Const("other_source", 1)}));
  In(2, Take("other"));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"source", "stage/put", "stage/take"}),
              ElementsAre("GPU:2", "GPU:2", "GPU:2"));
  EXPECT_THAT(Devices({"other_source", "other/put", "other/take"}),
              ElementsAre("GPU:0", "GPU:4", "GPU:4"));
}

// What a stage on the CPU delivers goes to the step.
TEST_F(StreamPlacementTest, RecordsOfTheCpuAreNotOnTheStreamOfTheStage) {
  Node* source = On("CPU:0", graph_.Const("source", 1));
  In(1, Put("stage", {graph_.Neg("on_gpu", source)}))
      ->AddAttr(kDeliversAttr, true);
  Take("stage");
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"source", "on_gpu", "stage/put", "stage/take"}),
              ElementsAre("CPU:0", "GPU:2", "GPU:0", "GPU:0"));
}

TEST_F(StreamPlacementTest, NodesThatTheStepUsesTooStay) {
  Node* shared_input = graph_.Const("shared_input", 1);
  Node* shared = graph_.Neg("shared", shared_input);
  Node* variable = VarHandle("variable");
  Node* read = Read("read", variable);
  Node* own = graph_.AddN("own", {shared, read});
  In(1, Put("stage", {own}));
  graph_.AddN("loss", {Take("stage"), shared});
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"shared_input", "shared", "own"}),
              ElementsAre("GPU:0", "GPU:0", "GPU:2"));
  // Nothing else uses the variable.
  EXPECT_THAT(Devices({"variable", "read"}), ElementsAre("GPU:2", "GPU:2"));
}

TEST_F(StreamPlacementTest, AVariableThatTheStepChangesStays) {
  Node* variable = VarHandle("variable");
  In(1, Put("stage", {Read("read", variable)}));
  Assign("assign", variable, Take("stage"));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"variable", "read", "assign"}),
              ElementsAre("GPU:0", "GPU:0", "GPU:0"));
}

TEST_F(StreamPlacementTest, StagesOfOneStreamMayShareNodes) {
  Node* shared_by_2 = graph_.Const("shared_by_2", 1);
  Node* shared_by_all = graph_.Const("shared_by_all", 1);
  In(1, Put("a", {shared_by_2, shared_by_all}));
  In(1, Put("b", {shared_by_2}));
  In(2, Put("c", {shared_by_all}));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"shared_by_2", "shared_by_all"}),
              ElementsAre("GPU:2", "GPU:0"));
}

TEST_F(StreamPlacementTest, AChainOfStagesHasAStreamForEach) {
  In(1, Put("first", {graph_.Const("a", 1)}));
  In(2, Put("second", {graph_.Neg("b", Take("first"))}));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "first/put", "first/take", "b", "second/put"}),
              ElementsAre("GPU:2", "GPU:2", "GPU:2", "GPU:4", "GPU:4"));
}

TEST_F(StreamPlacementTest, AStageOnStream0LeavesItsRegionWhereItIs) {
  In(0, Put("stage", {In(1, graph_.Const("a", 1)), graph_.Const("b", 1)}));
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "b"}), ElementsAre("GPU:2", "GPU:0"));
}

TEST_F(StreamPlacementTest, StagesDoNotMoveUnlessTheSettingIsOn) {
  settings_.stages = false;
  In(1, Put("stage", {graph_.Const("a", 1), In(2, graph_.Const("b", 1))}));
  Warnings warnings("stage_multi_stream");
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(Devices({"a", "b"}), ElementsAre("GPU:0", "GPU:4"));
  EXPECT_THAT(warnings.Texts(),
              ElementsAre(HasSubstr("The stage of node 'stage/put' asks for "
                                    "stream 1, but")));
}

TEST_F(StreamPlacementTest, NoWarningWithoutAStage) {
  settings_.stages = false;
  In(1, graph_.Const("a", 1));
  Warnings warnings("stage_multi_stream");
  ASSERT_EQ(Place(), OkStatus());
  EXPECT_THAT(warnings.Texts(), IsEmpty());
}

// Any client can write a graph with the attribute.
TEST_F(StreamPlacementTest, OtherNumbersAreRefused) {
  const auto refused = [this](Node* node, const auto& value) {
    node->AddAttr(kStreamAttr, value);
    const Status status = Place();
    EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
    graph_.get()->RemoveNode(node);
    return std::string(status.message());
  };
  EXPECT_EQ(refused(graph_.Const("a", 1), 3),
            "Node 'a' is in tf.stream(3), but the session has 3 GPU "
            "stream(s): the number must be from 0 to 2. Choose such a stream, "
            "or raise rewrite_options.multi_stream_opts.multi_stream_num.");
  EXPECT_THAT(refused(graph_.Const("a", 1), int64_t{-1}),
              HasSubstr("tf.stream(-1)"));
  EXPECT_THAT(refused(graph_.Const("a", 1), int64_t{1} << 40),
              HasSubstr("tf.stream(1099511627776)"));
  EXPECT_THAT(refused(graph_.Const("a", 1), "one"),
              HasSubstr("Attribute _stream_id of node 'a' is \"one\"; it must "
                        "be an integer"));
  EXPECT_THAT(refused(Put("stage", {graph_.Const("b", 1)}), 4),
              HasSubstr("The stage of node 'stage/put' has "
                        "stage_subgraph_stream_id 4, but"));
  // Also on a CPU.
  EXPECT_THAT(refused(On("CPU:0", graph_.Const("a", 1)), 3),
              HasSubstr("tf.stream(3)"));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
