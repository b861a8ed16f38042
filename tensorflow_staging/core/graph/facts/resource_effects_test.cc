// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/resource_effects.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Strings = std::vector<std::string>;

// Tests what uses of variable `v` do to it.
class ResourceEffectsTest : public ::testing::Test {
 protected:
  ResourceEffectsTest() {
    NodeBuilder handle("v", "VarHandleOp");
    handle.Attr("dtype", DT_INT64)
        .Attr("shape", TensorShape({}))
        .Attr("shared_name", "v");
    variable_ = graph_.Finalize(&handle);
    Define("reads", {Read("y", "a")});
    Define("reads_both", {Read("x", "a"),
                          Read("z", "b"),
                          {{"y"}, "AddV2", {"x", "z"}, {{"T", DT_INT64}}}});
    FDH::Node add = {
        {}, "AssignAddVariableOp", {"b", "c"}, {{"dtype", DT_INT64}}};
    // A node without outputs needs a name.
    add.name = "add";
    Define("writes_b", {{{"c"},
                         "Const",
                         {},
                         {{"value", Tensor(int64_t{1})}, {"dtype", DT_INT64}}},
                        add,
                        Read("y", "a")});
    Define("calls_reads", {Call("reads")});
    Define("calls_writes_b", {Call("writes_b")});
    Define("calls_itself", {Call("calls_itself")});
    Define("unknown_op", {Call("missing")});
    graph_.AddFunction(FDH::Create("loop", {"a: resource", "b: resource"},
                                   {"c: resource", "d: resource"}, {}, {},
                                   {{"c", "a"}, {"d", "b"}}));
    graph_.AddFunction(FDH::Create("swap", {"a: resource", "b: resource"},
                                   {"c: resource", "d: resource"}, {}, {},
                                   {{"c", "b"}, {"d", "a"}}));
  }

  static FDH::Node Read(const std::string& name, const std::string& handle) {
    return {{name}, "ReadVariableOp", {handle}, {{"dtype", DT_INT64}}};
  }

  static FDH::Node Call(const std::string& function) {
    return {{"y"},
            "StatefulPartitionedCall",
            {"a", "b"},
            {{"Tin", DataTypeSlice{DT_RESOURCE, DT_RESOURCE}},
             {"Tout", DataTypeSlice{DT_INT64}},
             {"f", FDH::FunctionRef(function)}}};
  }

  void Define(const std::string& name, const std::vector<FDH::Node>& nodes) {
    FunctionDef function = FDH::Define(name, {"a: resource", "b: resource"},
                                       {"y: int64"}, {}, nodes);
    function.mutable_signature()->set_is_stateful(true);
    graph_.AddFunction(function);
  }

  static AttrValue Function(const std::string& name) {
    AttrValue value;
    value.mutable_func()->set_name(name);
    return value;
  }

  ResourceEffect Find(const Node* user, int input) {
    ResourceEffects effects(graph_.get()->flib_def());
    return effects.Find({user, input});
  }

  // The effects of a call that gets the variable twice.
  std::pair<ResourceEffect, ResourceEffect> FindCall(
      const std::string& function) {
    NodeBuilder builder(strings::StrCat("call", calls_++),
                        "StatefulPartitionedCall");
    builder.Input(TestGraph::Outs{variable_, variable_})
        .Attr("Tout", DataTypeVector{DT_INT64})
        .Attr("f", Function(function));
    const Node* call = graph_.Finalize(&builder);
    return {Find(call, 0), Find(call, 1)};
  }

  ResourceEffect FindMap(const std::string& function) {
    NodeBuilder range(strings::StrCat("range", calls_), "RangeDataset");
    Node* one = graph_.Const(strings::StrCat("one", calls_), 1);
    const std::vector<PartialTensorShape> shapes = {TensorShape({})};
    range.Input(one).Input(one).Input(one);
    range.Attr("output_types", DataTypeVector{DT_INT64})
        .Attr("output_shapes", shapes);
    NodeBuilder map(strings::StrCat("map", calls_++), "MapDataset");
    map.Input(graph_.Finalize(&range))
        .Input(TestGraph::Outs{variable_, variable_})
        .Attr("f", Function(function))
        .Attr("output_types", DataTypeVector{DT_INT64})
        .Attr("output_shapes", shapes);
    return Find(graph_.Finalize(&map), 1);
  }

  TestGraph graph_;
  Node* variable_;

 private:
  int calls_ = 0;
};

using Pair = std::pair<ResourceEffect, ResourceEffect>;

TEST_F(ResourceEffectsTest, FollowsFromTheOp) {
  NodeBuilder read("read", "ReadVariableOp");
  read.Input(variable_).Attr("dtype", DT_INT64);
  EXPECT_EQ(Find(graph_.Finalize(&read), 0), ResourceEffect::kRead);
  NodeBuilder shape("shape", "VariableShape");
  shape.Input(variable_);
  EXPECT_EQ(Find(graph_.Finalize(&shape), 0), ResourceEffect::kNone);
  NodeBuilder identity("identity", "Identity");
  identity.Input(variable_);
  EXPECT_EQ(Find(graph_.Finalize(&identity), 0), ResourceEffect::kNone);
  for (const auto& [op, effect] :
       {std::make_pair("AssignVariableOp", ResourceEffect::kAssign),
        std::make_pair("AssignSubVariableOp", ResourceEffect::kWrite)}) {
    NodeBuilder builder(op, op);
    builder.Input(variable_).Input(
        graph_.Const(strings::StrCat(op, "/value"), 1));
    EXPECT_EQ(Find(graph_.Finalize(&builder), 0), effect) << op;
  }
}

TEST_F(ResourceEffectsTest, AnImportFillsAFixedTableOnce) {
  for (const auto& [table, effect] :
       {std::make_pair("HashTableV2", ResourceEffect::kInitialize),
        std::make_pair("MutableHashTableV2", ResourceEffect::kAssign)}) {
    NodeBuilder fill(strings::StrCat(table, "/fill"), "LookupTableImportV2");
    fill.Input(graph_.Table(table, table))
        .Input(graph_.Const(strings::StrCat(table, "/keys"), 1))
        .Input(graph_.Const(strings::StrCat(table, "/values"), 2));
    EXPECT_EQ(Find(graph_.Finalize(&fill), 0), effect) << table;
  }
}

TEST_F(ResourceEffectsTest, AReferenceIsReadByValueAndWrittenByReference) {
  Node* variable = graph_.RefVariable("ref");
  EXPECT_EQ(Find(graph_.Neg("neg", variable), 0), ResourceEffect::kRead);
  NodeBuilder identity("ref_identity", "Identity");
  identity.Input(variable);
  EXPECT_EQ(Find(graph_.Finalize(&identity), 0), ResourceEffect::kRead);
  NodeBuilder forward("ref_forward", "RefIdentity");
  forward.Input(variable);
  EXPECT_EQ(Find(graph_.Finalize(&forward), 0), ResourceEffect::kNone);
  NodeBuilder add("ref_add", "AssignAdd");
  add.Input(variable).Input(graph_.Const("ref_one", 1));
  EXPECT_EQ(Find(graph_.Finalize(&add), 0), ResourceEffect::kWrite);
}

TEST_F(ResourceEffectsTest, AFunctionThatNamesAResourceMayWriteIt) {
  EXPECT_EQ(Find(variable_, ResourceUse::kByName), ResourceEffect::kWrite);
}

TEST_F(ResourceEffectsTest, EachArgumentOfACallHasItsOwnEffect) {
  EXPECT_EQ(FindCall("reads"),
            Pair(ResourceEffect::kRead, ResourceEffect::kNone));
  EXPECT_EQ(FindCall("reads_both"),
            Pair(ResourceEffect::kRead, ResourceEffect::kRead));
  EXPECT_EQ(FindCall("writes_b"),
            Pair(ResourceEffect::kRead, ResourceEffect::kWrite));
  EXPECT_EQ(FindCall("calls_reads"),
            Pair(ResourceEffect::kRead, ResourceEffect::kNone));
  EXPECT_EQ(FindCall("calls_writes_b"),
            Pair(ResourceEffect::kRead, ResourceEffect::kWrite));
}

TEST_F(ResourceEffectsTest, AFunctionThatCannotBeExaminedMayWrite) {
  const Pair writes(ResourceEffect::kWrite, ResourceEffect::kWrite);
  EXPECT_EQ(FindCall("missing"), writes);
  EXPECT_EQ(FindCall("unknown_op"), writes);
  EXPECT_EQ(FindCall("calls_itself"), writes);
  EXPECT_EQ(FindCall("loop"),
            writes);  // Nobody knows the users of its results.
}

TEST_F(ResourceEffectsTest, BothBranchesOfAnIfCount) {
  const auto find = [this](const std::string& branch, int input) {
    NodeBuilder builder(strings::StrCat("if_", branch, input), "If");
    builder.Input(graph_.Const(strings::StrCat("cond_", branch, input), 1))
        .Input(TestGraph::Outs{variable_, variable_})
        .Attr("Tout", DataTypeVector{DT_INT64})
        .Attr("then_branch", Function("reads"))
        .Attr("else_branch", Function(branch));
    return Find(graph_.Finalize(&builder), input);
  };
  EXPECT_EQ(find("reads", 2), ResourceEffect::kNone);
  EXPECT_EQ(find("writes_b", 1), ResourceEffect::kRead);
  EXPECT_EQ(find("writes_b", 2), ResourceEffect::kWrite);
}

TEST_F(ResourceEffectsTest, ALoopMayPassAHandleOnToItself) {
  const auto find = [this](const std::string& body) {
    NodeBuilder builder(strings::StrCat("while_", body), "While");
    builder.Input(TestGraph::Outs{variable_, variable_})
        .Attr("cond", Function("reads"))
        .Attr("body", Function(body));
    return graph_.Finalize(&builder);
  };
  EXPECT_EQ(Find(find("swap"), 0), ResourceEffect::kWrite);
  Node* loop = find("loop");
  EXPECT_EQ(Find(loop, 0), ResourceEffect::kRead);
  graph_.IdentityN("uses_result", {{loop, 0}});
  EXPECT_EQ(Find(loop, 0), ResourceEffect::kWrite);
  EXPECT_EQ(Find(loop, 1), ResourceEffect::kNone);
}

TEST_F(ResourceEffectsTest, TheWorstEffectOfADatasetsFunctionsCounts) {
  EXPECT_EQ(FindMap("reads"), ResourceEffect::kRead);
  EXPECT_EQ(FindMap("writes_b"), ResourceEffect::kWrite);
  EXPECT_EQ(FindMap("missing"), ResourceEffect::kWrite);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
