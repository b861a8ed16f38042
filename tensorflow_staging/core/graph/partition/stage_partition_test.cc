// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/stage_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Strings = std::vector<std::string>;
// A reason, and the name of the node that it is about.
using Reason = std::pair<StepReason, std::string>;

Reason WhyNot(const StagePartition& partition, const Node* node) {
  const LocatedReason located = partition.WhyNot(*node);
  return {located.reason, located.node == nullptr ? "" : located.node->name()};
}

const Reason kStaged = {StepReason::kNone, ""};

Strings BoundaryOf(const StagedRegion& region) {
  Strings names;
  for (const StagedTensor& tensor : region.boundary) {
    names.push_back(tensor.name());
  }
  return names;
}

TEST(StagePartitionTest, AChainRunsAheadUpToTheStep) {
  TestGraph graph;
  Node* next = graph.Source("next");
  Node* hash = graph.Neg("hash", next);
  Node* gather = graph.AddN("gather", {hash, graph.RefVariable("emb")});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  const StagedRegion& region = partition.regions().front();
  EXPECT_EQ(Names(region.sources), Strings{"next"});
  EXPECT_EQ(Names(region.nodes), (Strings{"next", "hash"}));
  EXPECT_EQ(BoundaryOf(region), (Strings{"hash:0", "next:0"}));
  EXPECT_EQ(region.control_boundary.size(), 0);
  EXPECT_EQ(WhyNot(partition, next), kStaged);
  EXPECT_EQ(WhyNot(partition, hash), kStaged);
  EXPECT_EQ(WhyNot(partition, gather), Reason(StepReason::kVariable, "emb"));
}

// A node of the step, and the reason.
struct StepNode {
  const char* name;
  std::function<Node*(TestGraph*)> make;
  Reason reason;
};

class StepNodeTest : public ::testing::TestWithParam<StepNode> {};

// Builds source -> a -> b -> c, where b depends on a node of the step.
void ExpectThatBStays(const Reason& reason,
                      const std::function<Node*(TestGraph*, Node* a)>& make_b) {
  TestGraph graph;
  Node* a = graph.Neg("a", graph.Source("next"));
  Node* b = make_b(&graph, a);
  Node* c = graph.Neg("c", b);
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes), (Strings{"next", "a"}));
  EXPECT_EQ(WhyNot(partition, b), reason);
  EXPECT_EQ(WhyNot(partition, c), reason);
}

TEST_P(StepNodeTest, AUserOfItsValueStays) {
  ExpectThatBStays(GetParam().reason, [](TestGraph* graph, Node* a) {
    return graph->AddN("b", {a, GetParam().make(graph)});
  });
}

TEST_P(StepNodeTest, ANodeThatWaitsForItStays) {
  ExpectThatBStays(GetParam().reason, [](TestGraph* graph, Node* a) {
    Node* b = graph->Neg("b", a);
    graph->AddControl(GetParam().make(graph), b);
    return b;
  });
}

// A Merge whose inputs may both be dead.
Node* DeadOrAlive(TestGraph* graph) {
  Node* one = graph->Const("one", 1);
  Node* two = graph->Const("two", 2);
  Node* a = graph->Switch("a_switch", one, graph->Less("a_less", one, two));
  Node* b = graph->Switch("b_switch", one, graph->Less("b_less", two, one));
  return graph->Merge("merge", {a, b});
}

Node* Unary(TestGraph* graph, const char* name, const char* op) {
  Node* node = graph->Lone(name, op);
  graph->get()->AddEdge(graph->Const(strings::StrCat(name, "/in"), 1), 0, node,
                        0);
  return node;
}

INSTANTIATE_TEST_SUITE_P(
    EachReason, StepNodeTest,
    ::testing::Values(
        StepNode{"RefVariable",
                 [](TestGraph* graph) { return graph->RefVariable("v"); },
                 {StepReason::kVariable, "v"}},
        StepNode{"ResourceVariable",
                 [](TestGraph* graph) { return graph->ReadVariable("v"); },
                 {StepReason::kVariable, "v_handle"}},
        StepNode{"Placeholder",
                 [](TestGraph* graph) { return graph->Placeholder("fed"); },
                 {StepReason::kPlaceholder, "fed"}},
        StepNode{"ControlFlow",
                 [](TestGraph* graph) { return DeadOrAlive(graph); },
                 {StepReason::kControlFlow, "merge"}},
        StepNode{"Collective",
                 [](TestGraph* graph) {
                   return Unary(graph, "reduce", "CollectiveReduce");
                 },
                 {StepReason::kCollective, "reduce"}},
        StepNode{"Saver",
                 [](TestGraph* graph) {
                   return graph->Lone("restore", "Restore",
                                      {{"dt", graph->Attr(DT_INT64)}});
                 },
                 {StepReason::kSaver, "restore"}},
        StepNode{"Target",
                 [](TestGraph* graph) {
                   return graph->Target("target", {graph->Const("value", 1)});
                 },
                 {StepReason::kTarget, "target"}},
        StepNode{"SideEffect",
                 [](TestGraph* graph) {
                   return graph->Lone("dequeue", "QueueDequeueV2");
                 },
                 {StepReason::kSideEffect, "dequeue"}}),
    [](const auto& info) { return info.param.name; });

TEST(StagePartitionTest, ANodeThatWaitsForASummaryStays) {
  ExpectThatBStays(
      {StepReason::kSummary, "summary"}, [](TestGraph* graph, Node* a) {
        Node* b = graph->Neg("b", a);
        graph->AddControl(graph->Lone("summary", "ScalarSummary"), b);
        return b;
      });
}

TEST(StagePartitionTest, ALookupInAWrittenTableStays) {
  TestGraph graph;
  Node* table = graph.Table("table", "MutableHashTableV2");
  Node* found = graph.Lookup("found", table, graph.Source("next"));
  NodeBuilder insert("insert", "LookupTableInsertV2");
  insert.Input(table)
      .Input(graph.Const("key", 1))
      .Input(graph.Const("value", 1));
  graph.Finalize(&insert);
  const StagePartition partition(*graph.get());
  EXPECT_EQ(WhyNot(partition, found), Reason(StepReason::kTable, "table"));
}

TEST(StagePartitionTest, TheReasonIsAboutTheNearestNode) {
  TestGraph graph;
  Node* near = graph.RefVariable("near_variable");
  Node* far = graph.Neg("far", graph.RefVariable("far_variable"));
  Node* b = graph.AddN("b", {graph.Neg("further", far), near});
  const StagePartition partition(*graph.get());
  EXPECT_EQ(WhyNot(partition, b),
            Reason(StepReason::kVariable, "near_variable"));
}

TEST(StagePartitionTest, AMarkedNodeEndsTheRegion) {
  TestGraph graph;
  Node* a = graph.Neg("a", graph.Source("next"));
  graph.Target("target", {a});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "next:0"}));
}

TEST(StagePartitionTest, AMarkedSourceRunsAheadWithoutItsUsers) {
  TestGraph graph;
  Node* next = graph.Source("next", 2);
  next->AddAttr(kTargetAttr, true);
  Node* a = graph.Neg("a", next);
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes), Strings{"next"});
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"next:0", "next:1"}));
  EXPECT_EQ(WhyNot(partition, a), Reason(StepReason::kTarget, "next"));
}

TEST(StagePartitionTest, TheBoundaryIsSortedAndHasEachTensorOnce) {
  TestGraph graph;
  Node* next = graph.Source("next", 3);
  Node* z = graph.Neg("z", {next, 0});
  Node* a = graph.IdentityN("a", {{next, 1}, {next, 2}});
  graph.Target("first", {{z, 0}, {a, 1}, {next, 2}});
  graph.Target("second", {{next, 2}, {a, 1}, {a, 0}, {z, 0}});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "a:1", "next:0", "next:1", "next:2", "z:0"}));
}

TEST(StagePartitionTest, TheElementsOfTheSourceAreCarried) {
  TestGraph graph;
  Node* next = graph.Source("next", 3);
  graph.Target("target", {graph.Neg("a", {next, 1})});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "next:0", "next:1", "next:2"}));
  const StagePartition without_elements(*graph.get(), NodeFilter(),
                                        RecordContent::kBoundaryOnly);
  ASSERT_EQ(without_elements.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(without_elements.regions().front()),
            (Strings{"a:0", "next:0", "next:2"}));
}

// Adds an update of a variable that depends on `value`.
void AddUpdate(TestGraph* graph, Node* value) {
  Node* sum = graph->AddN("sum", {value, graph->ReadVariable("updated")});
  graph->AddControl(sum, graph->Lone("update", "AssignAddVariableOp"));
}

TEST(StagePartitionTest, WhatOnlyASummaryNeedsStaysInTheStep) {
  TestGraph graph;
  Node* next = graph.Source("next", 2);
  Node* a = graph.Neg("a", {next, 0});
  Node* shown = graph.Neg("shown", a);
  graph.AddControl(shown, graph.Lone("summary", "ScalarSummary"));
  AddUpdate(&graph, graph.Neg("b", a));
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes),
            (Strings{"next", "a", "b"}));
  // The step computes a:0 again if somebody asks for `shown`.
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"b:0", "next:0", "next:1"}));
  EXPECT_EQ(WhyNot(partition, shown), Reason(StepReason::kUnneeded, ""));
}

// As a loss, of whose labels training needs only the gradient.
TEST(StagePartitionTest, WhatAFetchComputesWithAVariableIsCarried) {
  TestGraph graph;
  Node* a = graph.Neg("a", graph.Source("next"));
  Node* shown = graph.Neg("shown", a);
  AddUpdate(&graph, graph.Neg("b", shown));
  graph.AddN("loss", {a, graph.ReadVariable("variable")});
  Node* summary = graph.Lone("summary", "ScalarSummary");
  graph.get()->AddEdge(shown, 0, summary, 1);
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "b:0", "next:0"}));
}

TEST(StagePartitionTest, ADrawThatASummaryUsesIsCarried) {
  TestGraph graph;
  Node* a = graph.AddN("a", {graph.Source("next"), graph.Random("random")});
  Node* b = graph.Neg("b", a);
  graph.AddControl(graph.Neg("shown", b),
                   graph.Lone("summary", "ScalarSummary"));
  AddUpdate(&graph, graph.Neg("c", b));
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"b:0", "c:0", "next:0"}));
}

// A graph that predicts updates nothing, and so does the part of a graph that
// reads an iterator of its own for evaluation.
TEST(StagePartitionTest, ASourceThatTrainingDoesNotNeedRunsAheadOfAnyStep) {
  TestGraph graph;
  Node* variable = graph.ReadVariable("variable");
  graph.AddN("predicted", {graph.Neg("a", graph.Source("next")), variable});
  AddUpdate(&graph, graph.Neg("b", graph.Source("other")));
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 2);
  EXPECT_EQ(Names(partition.regions()[0].nodes), (Strings{"next", "a"}));
  EXPECT_EQ(Names(partition.regions()[1].nodes), (Strings{"other", "b"}));
}

TEST(StagePartitionTest, TheStepMayWaitForNodesOfTheRegion) {
  TestGraph graph;
  Node* next = graph.Source("next");
  Node* check = graph.Neg("check", next);
  Node* another = graph.Neg("another", next);
  Node* target = graph.Target("target", {next});
  graph.AddControl(check, target);
  graph.AddControl(another, target);
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  const StagedRegion& region = partition.regions().front();
  EXPECT_EQ(Names(region.control_boundary), (Strings{"another", "check"}));
  EXPECT_EQ(BoundaryOf(region), Strings{"next:0"});
  EXPECT_EQ(WhyNot(partition, check), kStaged);
}

TEST(StagePartitionTest, WithoutATensorForTheStepNothingIsStaged) {
  TestGraph graph;
  Node* check = graph.IdentityN("check", {graph.Source("next")});
  Node* done = graph.NoOp("done");
  graph.AddControl(check, done);
  graph.AddControl(done, graph.Target("target", {graph.Const("value", 1)}));
  const StagePartition partition(*graph.get());
  EXPECT_EQ(partition.regions().size(), 0);
  EXPECT_EQ(WhyNot(partition, check),
            Reason(StepReason::kNothingToCarry, "check"));
  EXPECT_EQ(WhyNot(partition, done),
            Reason(StepReason::kNothingToCarry, "done"));
}

TEST(StagePartitionTest, WithoutAStepNothingIsStaged) {
  TestGraph graph;
  Node* a = graph.Neg("a", graph.Source("next"));
  const StagePartition partition(*graph.get());
  EXPECT_EQ(partition.regions().size(), 0);
  EXPECT_EQ(WhyNot(partition, a), Reason(StepReason::kUnneeded, ""));
}

TEST(StagePartitionTest, WithoutASourceNothingIsStaged) {
  TestGraph graph;
  Node* a = graph.Neg("a", graph.Const("value", 1));
  graph.Target("target", {a});
  const StagePartition partition(*graph.get());
  EXPECT_EQ(partition.regions().size(), 0);
  EXPECT_EQ(WhyNot(partition, a), Reason(StepReason::kNoSource, ""));
}

TEST(StagePartitionTest, AnEmptyGraphHasNoRegion) {
  TestGraph graph;
  EXPECT_EQ(StagePartition(*graph.get()).regions().size(), 0);
}

TEST(StagePartitionTest, LeavesStayInTheStepAndTheirInputsAreCarried) {
  TestGraph graph;
  Node* next = graph.Source("next");
  Node* a = graph.Neg("a", next);
  Node* leaf = graph.Neg("leaf", graph.Neg("twig", next));
  graph.Target("target", {a});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "next:0"}));
  EXPECT_EQ(WhyNot(partition, leaf), Reason(StepReason::kUnneeded, ""));
}

TEST(StagePartitionTest, BothSidesUseAConstant) {
  TestGraph graph;
  Node* constant = graph.Neg("constant", graph.Const("value", 1));
  Node* a = graph.AddN("a", {graph.Source("next"), constant});
  graph.Target("target", {a, constant});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes), (Strings{"next", "a"}));
  EXPECT_EQ(BoundaryOf(partition.regions().front()),
            (Strings{"a:0", "next:0"}));
  EXPECT_EQ(WhyNot(partition, constant), Reason(StepReason::kNoSource, ""));
}

TEST(StagePartitionTest, ARandomOpRunsAheadWithItsUsers) {
  TestGraph graph;
  Node* random = graph.Random("random");
  Node* scaled = graph.Neg("scaled", random);
  graph.Target("target", {graph.AddN("a", {graph.Source("next"), scaled})});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(WhyNot(partition, random), kStaged);
  EXPECT_EQ(WhyNot(partition, scaled), kStaged);
  EXPECT_EQ(WhyNot(partition, graph.Find("random/max")),
            Reason(StepReason::kNoSource, ""));
}

TEST(StagePartitionTest, ARandomOpThatBothSidesUseStaysInTheStep) {
  TestGraph graph;
  Node* random = graph.Random("random");
  Node* next = graph.Source("next");
  Node* a = graph.AddN("a", {next, random});
  graph.Target("target", {a, random});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes), Strings{"next"});
  const Reason reason = {StepReason::kOncePerRecordOnBothSides, "random"};
  EXPECT_EQ(WhyNot(partition, random), reason);
  EXPECT_EQ(WhyNot(partition, a), reason);
}

TEST(StagePartitionTest, ARandomOpThatALeafUsesStaysInTheStep) {
  TestGraph graph;
  Node* random = graph.Random("random");
  Node* a = graph.AddN("a", {graph.Source("next"), random});
  graph.Neg("leaf", random);
  graph.Target("target", {a});
  const StagePartition partition(*graph.get());
  EXPECT_EQ(WhyNot(partition, a),
            Reason(StepReason::kOncePerRecordOnBothSides, "random"));
}

TEST(StagePartitionTest, ANodeThatADrawMovesToTheStepMovesItsOtherDraws) {
  TestGraph graph;
  Node* first = graph.Random("first");
  Node* second = graph.Random("second");
  Node* next = graph.Source("next");
  Node* a = graph.AddN("a", {next, first, second});
  Node* b = graph.AddN("b", {next, second});
  graph.Target("target", {a, b, first});
  const StagePartition partition(*graph.get());
  EXPECT_EQ(WhyNot(partition, a),
            Reason(StepReason::kOncePerRecordOnBothSides, "first"));
  EXPECT_EQ(WhyNot(partition, b),
            Reason(StepReason::kOncePerRecordOnBothSides, "second"));
}

TEST(StagePartitionTest, ARandomOpThatDependsOnTheRecordRunsAhead) {
  TestGraph graph;
  Node* next = graph.Source("next");
  NodeBuilder shuffle("shuffle", "RandomShuffle");
  shuffle.Input(next);
  Node* shuffled = graph.Finalize(&shuffle);
  graph.Target("target", {shuffled});
  graph.Neg("leaf", shuffled);
  const StagePartition partition(*graph.get());
  EXPECT_EQ(WhyNot(partition, shuffled), kStaged);
}

TEST(StagePartitionTest, LookupsInReadOnlyTablesRunAhead) {
  for (const char* op : {"HashTableV2", "MutableHashTableV2"}) {
    TestGraph graph;
    Node* table = graph.Table("table", op);
    Node* found = graph.Lookup("found", table, graph.Source("next"));
    graph.Target("target", {found});
    const StagePartition partition(*graph.get());
    ASSERT_EQ(partition.regions().size(), 1) << op;
    EXPECT_EQ(Names(partition.regions().front().nodes),
              (Strings{"next", "found"}))
        << op;
    EXPECT_EQ(WhyNot(partition, table), Reason(StepReason::kNoSource, ""))
        << op;
  }
}

// A clone of the handle would be another table.
TEST(StagePartitionTest, AHandleThatWaitsForTheRecordStaysInTheStep) {
  TestGraph graph;
  Node* next = graph.Source("next");
  Node* table = graph.Table("table", "HashTableV2");
  graph.AddControl(next, table);
  Node* found = graph.Lookup("found", table, next);
  graph.Target("target", {found});
  const StagePartition partition(*graph.get());
  ASSERT_EQ(partition.regions().size(), 1);
  EXPECT_EQ(Names(partition.regions().front().nodes), Strings{"next"});
  EXPECT_EQ(WhyNot(partition, found), Reason(StepReason::kSideEffect, "table"));
}

// Builds one graph with its nodes added in one of two orders.
class ReorderedGraph {
 public:
  explicit ReorderedGraph(bool reversed) {
    std::vector<std::function<void()>> parts = {
        [this] { graph_.Target("t1", {Sum("a", {"n1", "n2"})}); },
        [this] { graph_.Target("t2", {Sum("b", {"n3", "r"})}); },
        [this] { graph_.Target("t3", {Sum("c", {"n4", "v"})}); }};
    std::vector<std::function<void()>> leaves = {
        [this] { Keep(graph_.Source("n1")); },
        [this] { Keep(graph_.Source("n2")); },
        [this] { Keep(graph_.Source("n3", 2)); },
        [this] { Keep(graph_.Source("n4")); },
        [this] { Keep(graph_.Random("r")); },
        [this] { Keep(graph_.ReadVariable("v")); }};
    if (reversed) {
      std::reverse(parts.begin(), parts.end());
      std::reverse(leaves.begin(), leaves.end());
    }
    for (const auto& add : leaves) add();
    for (const auto& add : parts) add();
  }

  // Describes the partition of the graph.
  Strings Describe() {
    const StagePartition partition(*graph_.get());
    Strings lines;
    for (const StagedRegion& region : partition.regions()) {
      Strings nodes = Names(region.nodes);
      std::sort(nodes.begin(), nodes.end());
      for (const Strings& names :
           {Names(region.sources), nodes, BoundaryOf(region)}) {
        lines.push_back(absl::StrJoin(names, " "));
      }
    }
    Strings reasons;
    for (const Node* node : graph_.get()->op_nodes()) {
      const auto [reason, name] = WhyNot(partition, node);
      reasons.push_back(strings::StrCat(node->name(), " ",
                                        static_cast<int>(reason), " ", name));
    }
    std::sort(reasons.begin(), reasons.end());
    lines.insert(lines.end(), reasons.begin(), reasons.end());
    return lines;
  }

 private:
  void Keep(Node* node) { nodes_[node->name()] = node; }

  Node* Sum(const std::string& name, const Strings& inputs) {
    TestGraph::Outs in;
    for (const std::string& input : inputs) in.push_back(nodes_.at(input));
    return graph_.AddN(name, in);
  }

  TestGraph graph_;
  std::map<std::string, Node*> nodes_;
};

TEST(StagePartitionTest, TheOrderOfTheNodesDoesNotMatter) {
  EXPECT_EQ(ReorderedGraph(false).Describe(), ReorderedGraph(true).Describe());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
