// SPDX-License-Identifier: Apache-2.0
//
// Tests the partition of graphs in which several ops use one resource: datasets
// that use variables and tables of the step, and ops of one shared_name.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Strings = std::vector<std::string>;
// A reason, and the name of the node that it is about.
using Reason = std::pair<StepReason, std::string>;

class ResourcesOfPartitionTest : public ::testing::Test {
 protected:
  // The nodes of each region.
  std::vector<Strings> Regions() {
    partition_ = std::make_unique<StagePartition>(*graph_.get());
    std::vector<Strings> regions;
    for (const StagedRegion& region : partition_->regions()) {
      regions.push_back(Names(region.nodes));
    }
    return regions;
  }

  Reason WhyNot(const Node* node) const {
    const LocatedReason located = partition_->WhyNot(*node);
    return {located.reason,
            located.node == nullptr ? "" : located.node->name()};
  }

  std::string Text(const Node* node) const {
    return ReasonText(*node, partition_->WhyNot(*node));
  }

  TestGraph graph_;

 private:
  std::unique_ptr<StagePartition> partition_;
};

constexpr char kDatasetOutput[] = "output_types";

// A graph whose step uses the elements of one iterator.
class CapturedResourcesTest : public ResourcesOfPartitionTest {
 protected:
  CapturedResourcesTest() {
    iterator_ = graph_.Iterator("iterator");
    next_ = graph_.GetNext("next", iterator_);
    graph_.Target("target", {graph_.Neg("a", next_)});
    NodeBuilder handle("v", "VarHandleOp");
    handle.Attr("dtype", DT_INT64)
        .Attr("shape", TensorShape({}))
        .Attr("shared_name", "v");
    variable_ = graph_.Finalize(&handle);
    AddFunction("reads",
                {{{"y"}, "ReadVariableOp", {"h"}, {{"dtype", DT_INT64}}}});
    FDH::Node add = {
        {}, "AssignAddVariableOp", {"h", "c"}, {{"dtype", DT_INT64}}};
    // A node without outputs needs a name.
    add.name = "add";
    AddFunction("writes",
                {{{"c"},
                  "Const",
                  {},
                  {{"value", Tensor(int64_t{1})}, {"dtype", DT_INT64}}},
                 add,
                 {{"y"}, "ReadVariableOp", {"h"}, {{"dtype", DT_INT64}}}});
    FunctionDef sized =
        FDH::Define("sized", {"x: int64", "h: resource"}, {"y: int64"}, {},
                    {{{"y"}, "LookupTableSizeV2", {"h"}, {}}});
    sized.mutable_signature()->set_is_stateful(true);
    graph_.AddFunction(sized);
    graph_.AddFunction(
        FDH::Define("adds", {"x: int64", "v: int64"}, {"y: int64"}, {},
                    {{{"y"}, "AddV2", {"x", "v"}, {{"T", DT_INT64}}}}));
  }

  void AddFunction(const std::string& name,
                   const std::vector<FDH::Node>& nodes) {
    FunctionDef function =
        FDH::Define(name, {"x: int64", "h: resource"}, {"y: int64"}, {}, nodes);
    function.mutable_signature()->set_is_stateful(true);
    graph_.AddFunction(function);
  }

  static AttrValue Function(const std::string& name) {
    AttrValue value;
    value.mutable_func()->set_name(name);
    return value;
  }

  static void SetShape(NodeBuilder* builder) {
    builder->Attr(kDatasetOutput, DataTypeVector{DT_INT64})
        .Attr("output_shapes",
              std::vector<PartialTensorShape>{TensorShape({})});
  }

  Node* Range(const std::string& name, TestGraph::Out stop) {
    NodeBuilder range(name, "RangeDataset");
    range.Input(graph_.Const(name + "/start", 0))
        .Input(stop)
        .Input(graph_.Const(name + "/step", 1));
    SetShape(&range);
    return graph_.Finalize(&range);
  }

  // A dataset whose function `function` gets `captured`.
  Node* Map(const std::string& name, const std::string& function,
            TestGraph::Out captured) {
    NodeBuilder map(name, "MapDataset");
    map.Input(Range(name + "/range", graph_.Const(name + "/stop", 9)))
        .Input(TestGraph::Outs{captured})
        .Attr("f", Function(function));
    SetShape(&map);
    return graph_.Finalize(&map);
  }

  void Initialize(Node* dataset) {
    NodeBuilder builder(dataset->name() + "/initialize", "MakeIterator");
    builder.Input(dataset).Input(iterator_);
    graph_.Finalize(&builder);
  }

  Node* UpdateVariable(const std::string& op) {
    NodeBuilder builder("update", op);
    builder.Input(variable_).Input(graph_.Const("value", 1));
    return graph_.Finalize(&builder);
  }

  const std::vector<Strings> kStaged = {{"next", "a"}};
  const Reason kBecauseOfV = {StepReason::kChangingData, "v"};
  Node* iterator_;
  Node* next_;
  Node* variable_;
};

TEST_F(CapturedResourcesTest, AVariableThatTheStepUpdatesKeepsItInTheStep) {
  Initialize(Map("map", "reads", variable_));
  EXPECT_EQ(Regions(), kStaged);
  UpdateVariable("AssignAddVariableOp");
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), kBecauseOfV);
  EXPECT_EQ(WhyNot(graph_.Find("a")), kBecauseOfV);
  EXPECT_EQ(Text(next_),
            "depends on an iterator whose dataset uses a resource that the "
            "graph may change, 'v' (VarHandleOp)");
}

TEST_F(CapturedResourcesTest, AVariableThatIsOnlyInitialisedIsNoObstacle) {
  Initialize(Map("map", "reads", variable_));
  graph_.AddControl(UpdateVariable("AssignVariableOp"), graph_.NoOp("init"));
  EXPECT_EQ(Regions(), kStaged);
}

TEST_F(CapturedResourcesTest, TheCaptureMayBeAnywhereInTheDataset) {
  UpdateVariable("AssignAddVariableOp");
  NodeBuilder identity("identity", "Identity");
  identity.Input(variable_);
  Node* map = Map("map", "reads", graph_.Finalize(&identity));
  NodeBuilder prefetch("prefetch", "PrefetchDataset");
  prefetch.Input(map).Input(graph_.Const("size", 2));
  SetShape(&prefetch);
  Node* prefetched = graph_.Finalize(&prefetch);
  // As when a function of the dataset uses another dataset.
  NodeBuilder outer("outer", "FlatMapDataset");
  outer.Input(Range("range", graph_.Const("stop", 3)))
      .Input(TestGraph::Outs{prefetched})
      .Attr("f", Function("unknown"));
  SetShape(&outer);
  NodeBuilder zip("zip", "ZipDataset");
  zip.Input(TestGraph::Outs{Range("other", graph_.Const("other_stop", 3)),
                            graph_.Finalize(&outer)});
  SetShape(&zip);
  Initialize(graph_.Finalize(&zip));
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), kBecauseOfV);
}

TEST_F(CapturedResourcesTest, AnyDatasetOfTheIteratorCounts) {
  UpdateVariable("AssignAddVariableOp");
  Initialize(Range("range", graph_.Const("stop", 3)));
  EXPECT_EQ(Regions(), kStaged);
  Initialize(Map("map", "reads", variable_));
  EXPECT_EQ(Regions(), std::vector<Strings>());
}

TEST_F(CapturedResourcesTest, AnotherIteratorOfItsDatasetDoesNotCount) {
  UpdateVariable("AssignAddVariableOp");
  Node* other = graph_.Iterator("other_iterator");
  NodeBuilder builder("initialize_other", "MakeIterator");
  builder.Input(Map("map", "reads", variable_)).Input(other);
  graph_.Finalize(&builder);
  Node* other_next = graph_.GetNext("other_next", other);
  graph_.Target("other_target", {other_next});
  EXPECT_EQ(Regions(), kStaged);
  EXPECT_EQ(WhyNot(other_next), kBecauseOfV);
}

TEST_F(CapturedResourcesTest, AVariableThatOnlyTheDatasetChangesIsNoObstacle) {
  Initialize(Map("map", "writes", variable_));
  EXPECT_EQ(Regions(), kStaged);
  NodeBuilder initialized("initialized", "VarIsInitializedOp");
  initialized.Input(variable_);
  graph_.Finalize(&initialized);
  EXPECT_EQ(Regions(), kStaged);
  NodeBuilder read("read", "ReadVariableOp");
  read.Input(variable_).Attr("dtype", DT_INT64);
  graph_.Finalize(&read);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), kBecauseOfV);
}

TEST_F(CapturedResourcesTest, ATableThatTheStepFillsKeepsItInTheStep) {
  Node* table = graph_.Table("table", "MutableHashTableV2");
  Initialize(Map("map", "sized", table));
  graph_.Target("found", {graph_.Lookup("lookup", table, next_)});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next", "a", "lookup"}}));
  NodeBuilder insert("insert", "LookupTableInsertV2");
  insert.Input(table)
      .Input(graph_.Const("key", 1))
      .Input(graph_.Const("new_value", 1));
  graph_.Finalize(&insert);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), Reason(StepReason::kChangingData, "table"));
}

TEST_F(CapturedResourcesTest, ATableThatOnlyItsInitialiserFillsIsNoObstacle) {
  Node* table = graph_.Table("table", "HashTableV2");
  Initialize(Map("map", "sized", table));
  NodeBuilder initialize("initialize", "InitializeTableV2");
  initialize.Input(table)
      .Input(graph_.Const("key", 1))
      .Input(graph_.Const("new_value", 1));
  graph_.Finalize(&initialize);
  EXPECT_EQ(Regions(), kStaged);
}

// The dataset keeps the memory of the variable.
TEST_F(CapturedResourcesTest, AVariableWithReferencesKeepsItInTheStep) {
  Node* variable = graph_.RefVariable("ref");
  NodeBuilder read("ref/read", "Identity");
  read.Input(variable);
  Node* value = graph_.Finalize(&read);
  Initialize(Map("map", "adds", value));
  EXPECT_EQ(Regions(), kStaged);
  NodeBuilder update("train", "AssignAdd");
  update.Input(variable).Input(graph_.Const("one", 1));
  graph_.Finalize(&update);
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), Reason(StepReason::kChangingData, "ref"));
}

// The dataset reads a number such as its size when it is created.
TEST_F(CapturedResourcesTest, ASizeThatIsAVariableIsNoObstacle) {
  Node* variable = graph_.RefVariable("ref");
  NodeBuilder update("train", "AssignAdd");
  update.Input(variable).Input(graph_.Const("one", 1));
  graph_.Finalize(&update);
  Initialize(Range("range", variable));
  EXPECT_EQ(Regions(), kStaged);
}

TEST_F(CapturedResourcesTest, AFunctionOfADatasetMayNameTheVariable) {
  graph_.AddFunction(
      FDH::Define("names", {"x: int64"}, {"y: int64"}, {},
                  {{{"h"},
                    "VarHandleOp",
                    {},
                    {{"dtype", DT_INT64},
                     {"shape", TensorShape({})},
                     {"shared_name", "v"}}},
                   {{"y"}, "ReadVariableOp", {"h"}, {{"dtype", DT_INT64}}}}));
  UpdateVariable("AssignAddVariableOp");
  NodeBuilder map("map", "MapDataset");
  map.Input(Range("range", graph_.Const("stop", 3)))
      .Input(TestGraph::Outs{})
      .Attr("f", Function("names"));
  SetShape(&map);
  Initialize(graph_.Finalize(&map));
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(next_), kBecauseOfV);
  // As when a dataset is built for an iterator that initialises itself.
  AttrValue types;
  types.mutable_list()->add_type(DT_INT64);
  Node* one_shot = graph_.Lone(
      "one_shot", "OneShotIterator",
      {{"dataset_factory", Function("names")}, {kDatasetOutput, types}});
  Node* other_next = graph_.GetNext("other_next", one_shot);
  graph_.Target("other_target", {other_next});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(other_next), kBecauseOfV);
}

// Ops of one shared_name.
class SharedNamesTest : public ResourcesOfPartitionTest {
 protected:
  Node* Iterator(const std::string& name, const std::string& shared_name) {
    return graph_.Iterator(name, /*components=*/1, shared_name);
  }

  Node* Table(const std::string& name, const std::string& op) {
    Node* table = graph_.Table(name, op);
    table->ClearAttr("shared_name");
    table->AddAttr("shared_name", "table");
    return table;
  }

  void Insert(Node* table) {
    NodeBuilder insert("insert", "LookupTableInsertV2");
    insert.Input(table)
        .Input(graph_.Const("key", 1))
        .Input(graph_.Const("value", 1));
    graph_.Finalize(&insert);
  }
};

TEST_F(SharedNamesTest, ElementsThatAreUsedTogetherRunAheadTogether) {
  Node* both =
      graph_.AddN("both", {graph_.GetNext("first", Iterator("i", "name")),
                           graph_.GetNext("second", Iterator("j", "name"))});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"first", "second", "both"}}));
}

TEST_F(SharedNamesTest, ElementsThatAreUsedSeparatelyStay) {
  Node* first = graph_.GetNext("first", Iterator("i", "name"));
  Node* second = graph_.GetNext("second", Iterator("j", "name"));
  graph_.Target("train", {first});
  graph_.Target("evaluate", {second});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Reason(StepReason::kMixedSources, "first"));
  EXPECT_EQ(WhyNot(second), Reason(StepReason::kMixedSources, "second"));
}

TEST_F(SharedNamesTest, AnIteratorThatTheStepReadsThroughAnotherOpStays) {
  Node* first = graph_.GetNext("first", Iterator("i", "name"));
  Node* second = graph_.GetNext("second", Iterator("j", "name"));
  graph_.AddControl(graph_.RefVariable("v"), second);
  graph_.Target("target", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>());
}

TEST_F(SharedNamesTest, AnIteratorMayBeSavedThroughItsOtherOp) {
  graph_.Target("target", {graph_.GetNext("next", Iterator("i", "name"))});
  NodeBuilder save("save", "SerializeIterator");
  save.Input(Iterator("j", "name"));
  graph_.Finalize(&save);
  EXPECT_EQ(Regions(), std::vector<Strings>{{"next"}});
}

TEST_F(SharedNamesTest, AnIteratorInitialisedThroughAnotherOpIsNotJoined) {
  Node* a = graph_.GetNext("a", Iterator("i", "name"));
  Node* both = graph_.AddN("both", {a, graph_.Source("b")});
  graph_.Target("target", {both});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a", "b", "both"}}));
  graph_.InitializeWithRange("initialize", Iterator("j", "name"), 0, 4);
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"a"}, {"b"}}));
}

TEST_F(SharedNamesTest, TheHandleMayPassThroughAnIdentity) {
  Node* iterator = graph_.Iterator("iterator");
  NodeBuilder identity("identity", "Identity");
  identity.Input(iterator);
  Node* first = graph_.GetNext("first", graph_.Finalize(&identity));
  graph_.Target("train", {first});
  EXPECT_EQ(Regions(), std::vector<Strings>{{"first"}});
  graph_.Target("evaluate", {graph_.GetNext("second", iterator)});
  EXPECT_EQ(Regions(), std::vector<Strings>());
  EXPECT_EQ(WhyNot(first), Reason(StepReason::kMixedSources, "first"));
}

TEST_F(SharedNamesTest, ATableThatIsWrittenThroughAnotherOpBelongsToTheStep) {
  Node* table = Table("t", "MutableHashTableV2");
  Node* other = Table("u", "MutableHashTableV2");
  graph_.Target("target",
                {graph_.Lookup("found", table, graph_.Source("next"))});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next", "found"}}));
  Insert(other);
  EXPECT_EQ(Regions(), std::vector<Strings>{{"next"}});
  EXPECT_EQ(WhyNot(graph_.Find("found")), Reason(StepReason::kTable, "t"));
}

// Whichever op runs first creates the table.
TEST_F(SharedNamesTest, ATableMayHaveOpsOfTwoTypes) {
  Node* table = Table("t", "HashTableV2");
  graph_.Target("target",
                {graph_.Lookup("found", table, graph_.Source("next"))});
  EXPECT_EQ(Regions(), (std::vector<Strings>{{"next", "found"}}));
  Insert(Table("u", "MutableHashTableV2"));
  EXPECT_EQ(Regions(), std::vector<Strings>{{"next"}});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
