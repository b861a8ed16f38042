// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/node_roles.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;

using Role = std::pair<NodeRole, StepReason>;

constexpr Role kPureNode = {NodeRole::kPure, StepReason::kNone};
constexpr Role kOnce = {NodeRole::kOncePerRecord, StepReason::kNone};
constexpr Role kHandleNode = {NodeRole::kHandle, StepReason::kNone};
constexpr Role kSourceNode = {NodeRole::kSource, StepReason::kNone};

constexpr Role Step(StepReason reason) { return {NodeRole::kStepOnly, reason}; }

Role RoleOf(TestGraph* graph, const Node* node) {
  const RoleAndReason found = NodeRoles(*graph->get()).Find(*node);
  return {found.role, found.reason};
}

// The role of a single node with the op `op`.
Role RoleOfOp(const std::string& op) {
  TestGraph graph;
  return RoleOf(&graph, graph.Lone("node", op));
}

struct Ops {
  Role role;
  std::vector<std::string> ops;
};

class OpRolesTest : public ::testing::TestWithParam<Ops> {};

TEST_P(OpRolesTest, FollowsFromTheOp) {
  for (const std::string& op : GetParam().ops) {
    EXPECT_EQ(RoleOfOp(op), GetParam().role) << op;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pure, OpRolesTest,
    ::testing::Values(Ops{kPureNode,
                          {"AddN", "AsString", "Bucketize", "Const",
                           "DecodeCSV", "NoOp", "PartitionedCall",
                           "SparseReshape", "StatelessIf",
                           "StatelessRandomUniform", "StatelessWhile",
                           "StringToHashBucketFast"}},
                      Ops{kPureNode,
                          {"Enter", "Exit", "LoopCond", "Merge",
                           "NextIteration", "Switch"}}));

INSTANTIATE_TEST_SUITE_P(
    OncePerRecord, OpRolesTest,
    ::testing::Values(
        Ops{kOnce,
            {"AllCandidateSampler",
             "FixedUnigramCandidateSampler",
             "LearnedUnigramCandidateSampler",
             "LogUniformCandidateSampler",
             "Multinomial",
             "NonDeterministicInts",
             "ParameterizedTruncatedNormal",
             "RandomCrop",
             "RandomGamma",
             "RandomPoisson",
             "RandomPoissonV2",
             "RandomShuffle",
             "RandomStandardNormal",
             "RandomUniform",
             "RandomUniformInt",
             "SampleDistortedBoundingBox",
             "SampleDistortedBoundingBoxV2",
             "StatelessRandomGetAlg",
             "ThreadUnsafeUnigramCandidateSampler",
             "TruncatedNormal",
             "UniformCandidateSampler"}},
        Ops{kOnce,
            {"Assert", "CheckNumerics", "CheckNumericsV2", "Print", "PrintV2"}},
        Ops{kOnce, {"EagerPyFunc", "PyFunc"}},
        Ops{kOnce,
            {"LookupTableExportV2", "LookupTableFindV2", "LookupTableSizeV2"}},
        Ops{kOnce,
            {"TensorArrayConcatV3", "TensorArrayGatherV3", "TensorArrayReadV3",
             "TensorArrayScatterV3", "TensorArraySizeV3", "TensorArrayV3",
             "TensorArrayWriteV3"}},
        Ops{kOnce, {"Empty", "GuaranteeConst"}}));

INSTANTIATE_TEST_SUITE_P(
    Handles, OpRolesTest,
    ::testing::Values(Ops{kHandleNode,
                          {"Iterator", "IteratorFromStringHandle",
                           "IteratorFromStringHandleV2", "IteratorV2",
                           "MultiDeviceIterator", "OneShotIterator"}},
                      Ops{kHandleNode, {"HashTable", "HashTableV2"}},
                      Ops{kHandleNode,
                          {"MutableDenseHashTable", "MutableDenseHashTableV2",
                           "MutableHashTable", "MutableHashTableOfTensors",
                           "MutableHashTableOfTensorsV2",
                           "MutableHashTableV2"}}));

INSTANTIATE_TEST_SUITE_P(
    Sources, OpRolesTest,
    ::testing::Values(Ops{
        kSourceNode,
        {"IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync",
         "MultiDeviceIteratorGetNextFromShard", "TensorBufferTake"}}));

INSTANTIATE_TEST_SUITE_P(
    StepOnly, OpRolesTest,
    ::testing::Values(
        Ops{Step(StepReason::kVariable),
            {"Assign", "AssignAdd", "RefEnter", "RefIdentity", "RefMerge",
             "RefSwitch", "TemporaryVariable", "VarHandleOp", "Variable",
             "VariableV2"}},
        Ops{Step(StepReason::kPlaceholder),
            {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg"}},
        Ops{Step(StepReason::kControlFlow),
            {"ControlTrigger", "_SwitchN", "_XlaMerge"}},
        Ops{Step(StepReason::kCollective),
            {"AllToAll", "CollectiveBcastRecv", "CollectiveReduceV2",
             "CrossReplicaSum", "NcclAllReduce", "_HostRecv", "_HostSend",
             "_Recv", "_Send"}},
        Ops{Step(StepReason::kSaver),
            {"MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2",
             "Save", "SaveSlices", "SaveV2"}},
        Ops{Step(StepReason::kSummary),
            {"HistogramSummary", "MergeSummary", "ScalarSummary",
             "TensorSummary", "TensorSummaryV2", "WriteScalarSummary"}},
        Ops{Step(StepReason::kManualStage),
            {"TensorBufferCancel", "TensorBufferClose", "TensorBufferPut",
             "TensorBufferResume", "TensorBufferSize"}},
        Ops{Step(StepReason::kSideEffect),
            {"AnonymousIteratorV2",
             "AssignVariableOp",
             "If",
             "InitializeTableV2",
             "LookupTableInsertV2",
             "MakeIterator",
             "QueueDequeueV2",
             "QueueEnqueueV2",
             "ReadVariableOp",
             "ReaderReadV2",
             "RemoteCall",
             "ResourceGather",
             "SerializeIterator",
             "StackPushV2",
             "StackV2",
             "Stage",
             "StatefulPartitionedCall",
             "Unstage",
             "While",
             "WriteFile"}}));

TEST(NodeRolesTest, AMarkedNodeBelongsToTheStep) {
  TestGraph graph;
  Node* node = graph.Const("const", 1);
  node->AddAttr(kTargetAttr, true);
  EXPECT_EQ(RoleOf(&graph, node), Step(StepReason::kTarget));
}

TEST(NodeRolesTest, AMarkThatIsFalseHasNoEffect) {
  TestGraph graph;
  Node* node = graph.Const("const", 1);
  node->AddAttr(kTargetAttr, false);
  EXPECT_EQ(RoleOf(&graph, node), kPureNode);
}

TEST(NodeRolesTest, AMarkedSourceIsStillASource) {
  TestGraph graph;
  Node* source = graph.Source("next");
  source->AddAttr(kTargetAttr, true);
  EXPECT_EQ(RoleOf(&graph, source), kSourceNode);
  Node* take = graph.Take("prefetch");
  take->AddAttr(kTargetAttr, true);
  EXPECT_EQ(RoleOf(&graph, take), kSourceNode);
}

TEST(NodeRolesTest, AMutableTableThatIsOnlyReadIsAHandle) {
  TestGraph graph;
  Node* table = graph.Table("table", "MutableHashTableV2");
  graph.Lookup("found", table, graph.Const("key", 1));
  NodeBuilder size("size", "LookupTableSizeV2");
  size.Input(table);
  graph.Finalize(&size);
  graph.AddControl(table, graph.NoOp("after"));
  EXPECT_EQ(RoleOf(&graph, table), kHandleNode);
}

TEST(NodeRolesTest, AMutableTableThatIsWrittenBelongsToTheStep) {
  TestGraph graph;
  Node* table = graph.Table("table", "MutableHashTableV2");
  graph.Lookup("found", table, graph.Const("key", 1));
  NodeBuilder insert("insert", "LookupTableInsertV2");
  insert.Input(table)
      .Input(graph.Const("new_key", 1))
      .Input(graph.Const("new_value", 1));
  graph.Finalize(&insert);
  EXPECT_EQ(RoleOf(&graph, table), Step(StepReason::kTable));
}

TEST(NodeRolesTest, AMutableTablePassedToAFunctionCountsAsWritten) {
  TestGraph graph;
  Node* table = graph.Table("table", "MutableHashTableV2");
  AttrValue function;
  function.mutable_func()->set_name("any");
  NodeBuilder call("call", "StatefulPartitionedCall");
  call.Input(TestGraph::Outs{table})
      .Attr("Tout", DataTypeVector{DT_INT64})
      .Attr("f", function);
  graph.Finalize(&call);
  EXPECT_EQ(RoleOf(&graph, table), Step(StepReason::kTable));
}

TEST(NodeRolesTest, AStaticTableIsAHandleAlthoughItsInitializerWritesIt) {
  TestGraph graph;
  Node* table = graph.Table("table", "HashTableV2");
  NodeBuilder initialize("initialize", "InitializeTableV2");
  initialize.Input(table)
      .Input(graph.Const("key", 1))
      .Input(graph.Const("value", 1));
  const Node* initializer = graph.Finalize(&initialize);
  EXPECT_EQ(RoleOf(&graph, table), kHandleNode);
  EXPECT_EQ(RoleOf(&graph, initializer), Step(StepReason::kSideEffect));
}

// Tests ops that call functions of the graph's library.
class FunctionRolesTest : public ::testing::Test {
 protected:
  FunctionRolesTest() {
    Define("pure", {{{"y"}, "Neg", {"x"}, {{"T", DT_INT64}}}});
    Define("random", {{{"y"}, "RandomShuffle", {"x"}, {{"T", DT_INT64}}}});
    Define("reads_variable", {{{"v"},
                               "VarHandleOp",
                               {},
                               {{"dtype", DT_INT64},
                                {"shape", TensorShape({})},
                                {"shared_name", "v"},
                                {"container", ""}}},
                              {{"y"}, "ReadVariableOp", {"v"}, kInt64}});
    Define("summarises", {{{"s"}, "AsString", {"x"}, {{"T", DT_INT64}}},
                          {{"m"}, "MergeSummary", {"s"}, {{"N", 1}}},
                          {{"y"}, "Neg", {"x"}, {{"T", DT_INT64}}}});
    Define("communicates",
           {{{"y"}, "CrossReplicaSum", {"x", "x"}, {{"T", DT_INT64}}}});
    Define("calls_random", {Call("random")});
    Define("calls_reads_variable", {Call("reads_variable")});
    Define("calls_itself", {Call("calls_itself")});
    Define("ping", {Call("pong")});
    Define("pong", {Call("ping")});
    Define("calls_nothing_known", {Call("unknown")});
  }

  Role RoleOfCall(const std::string& op,
                  const std::map<std::string, std::string>& names) {
    std::map<std::string, AttrValue> functions;
    for (const auto& [attr, name] : names) {
      functions[attr].mutable_func()->set_name(name);
    }
    return RoleOf(&graph_, graph_.Lone("call", op, functions));
  }

  Role RoleOfCallTo(const std::string& function) {
    return RoleOfCall("StatefulPartitionedCall", {{"f", function}});
  }

  TestGraph graph_;

 private:
  inline static const std::vector<std::pair<string, FDH::AttrValueWrapper>>
      kInt64 = {{"dtype", DT_INT64}};

  static FDH::Node Call(const std::string& function) {
    return {{"y"},
            "StatefulPartitionedCall",
            {"x"},
            {{"Tin", DataTypeSlice{DT_INT64}},
             {"Tout", DataTypeSlice{DT_INT64}},
             {"f", FDH::FunctionRef(function)}}};
  }

  void Define(const std::string& name, const std::vector<FDH::Node>& nodes) {
    FunctionDef function =
        FDH::Define(name, {"x: int64"}, {"y: int64"}, {}, nodes);
    function.mutable_signature()->set_is_stateful(true);
    graph_.AddFunction(function);
  }
};

constexpr Role kSideEffect = Step(StepReason::kSideEffect);

TEST_F(FunctionRolesTest, TheRoleOfACallFollowsFromItsFunction) {
  EXPECT_EQ(RoleOfCallTo("pure"), kOnce);
  EXPECT_EQ(RoleOfCallTo("random"), kOnce);
  EXPECT_EQ(RoleOfCallTo("reads_variable"), kSideEffect);
  EXPECT_EQ(RoleOfCallTo("summarises"), kSideEffect);
  EXPECT_EQ(RoleOfCallTo("communicates"), kSideEffect);
}

TEST_F(FunctionRolesTest, TheRoleOfACallByNameFollowsFromItsFunction) {
  EXPECT_EQ(RoleOfCall("random", {}), kOnce);
  EXPECT_EQ(RoleOfCall("reads_variable", {}), kSideEffect);
}

TEST_F(FunctionRolesTest, NestedCallsCount) {
  EXPECT_EQ(RoleOfCallTo("calls_random"), kOnce);
  EXPECT_EQ(RoleOfCallTo("calls_reads_variable"), kSideEffect);
}

TEST_F(FunctionRolesTest, ARecursiveFunctionBelongsToTheStep) {
  EXPECT_EQ(RoleOfCallTo("calls_itself"), kSideEffect);
  EXPECT_EQ(RoleOfCallTo("ping"), kSideEffect);
  EXPECT_EQ(RoleOfCallTo("pong"), kSideEffect);
}

TEST_F(FunctionRolesTest, AMissingFunctionBelongsToTheStep) {
  EXPECT_EQ(RoleOfCallTo("unknown"), kSideEffect);
  EXPECT_EQ(RoleOfCallTo("calls_nothing_known"), kSideEffect);
}

TEST_F(FunctionRolesTest, BothBranchesOfAnIfCount) {
  const auto role = [this](const std::string& then_branch,
                           const std::string& else_branch) {
    return RoleOfCall(
        "If", {{"then_branch", then_branch}, {"else_branch", else_branch}});
  };
  EXPECT_EQ(role("pure", "random"), kOnce);
  EXPECT_EQ(role("reads_variable", "pure"), kSideEffect);
  EXPECT_EQ(role("pure", "reads_variable"), kSideEffect);
}

TEST_F(FunctionRolesTest, ConditionAndBodyOfAWhileCount) {
  const auto role = [this](const std::string& condition,
                           const std::string& body) {
    return RoleOfCall("While", {{"cond", condition}, {"body", body}});
  };
  EXPECT_EQ(role("pure", "random"), kOnce);
  EXPECT_EQ(role("reads_variable", "pure"), kSideEffect);
  EXPECT_EQ(role("pure", "reads_variable"), kSideEffect);
}

TEST_F(FunctionRolesTest, EveryBranchOfACaseCounts) {
  const auto role = [this](const std::vector<std::string>& branches) {
    AttrValue list;
    for (const std::string& branch : branches) {
      list.mutable_list()->add_func()->set_name(branch);
    }
    return RoleOf(&graph_, graph_.Lone("call", "Case", {{"branches", list}}));
  };
  EXPECT_EQ(role({"pure", "random", "calls_random"}), kOnce);
  EXPECT_EQ(role({"pure", "random", "reads_variable"}), kSideEffect);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
