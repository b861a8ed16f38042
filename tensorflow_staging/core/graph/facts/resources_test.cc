// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/resources.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Strings = std::vector<std::string>;

AttrValue Value(const std::string& text) {
  AttrValue value;
  value.set_s(text);
  return value;
}

AttrValue Value(bool flag) {
  AttrValue value;
  value.set_b(flag);
  return value;
}

class ResourcesTest : public ::testing::Test {
 protected:
  Node* Handle(const std::string& op, const std::string& shared_name,
               const std::string& container = "") {
    return graph_.Lone(
        strings::StrCat("handle", handles_++), op,
        {{"shared_name", Value(shared_name)}, {"container", Value(container)}});
  }

  bool Share(const Node* a, const Node* b) {
    const Resources resources(*graph_.get());
    return resources.OwnerOf(*a) == resources.OwnerOf(*b);
  }

  // The names of the users of the resource of `handle`.
  Strings UsersOf(const Node* handle, const NodeFilter& counts = {}) {
    const Resources resources(*graph_.get(), counts);
    Strings names;
    for (const ResourceUse& use :
         resources.UsesOf(*resources.OwnerOf(*handle))) {
      names.push_back(use.user->name());
    }
    return names;
  }

  TestGraph graph_;

 private:
  int handles_ = 0;
};

TEST_F(ResourcesTest, OpsOfOneSharedNameAndContainerShareAResource) {
  for (const char* op :
       {"IteratorV2", "MultiDeviceIterator", "HashTableV2",
        "MutableHashTableV2", "VarHandleOp", "VariableV2", "FIFOQueueV2"}) {
    const Node* first = Handle(op, "name");
    EXPECT_TRUE(Share(first, Handle(op, "name"))) << op;
    EXPECT_FALSE(Share(first, Handle(op, "other"))) << op;
    EXPECT_FALSE(Share(first, Handle(op, "name", "container"))) << op;
    EXPECT_TRUE(Share(first, Handle(op, "name", "localhost"))) << op;
  }
}

TEST_F(ResourcesTest, TheFirstOpInTheGraphIsTheOwner) {
  const Node* first = Handle("IteratorV2", "name");
  const Node* second = Handle("IteratorV2", "name");
  const Resources resources(*graph_.get());
  EXPECT_EQ(resources.OwnerOf(*second), first);
  EXPECT_EQ(resources.HandlesOf(*first),
            (std::vector<const Node*>{first, second}));
}

TEST_F(ResourcesTest, TablesOfAllTypesShareAResource) {
  EXPECT_TRUE(Share(Handle("HashTableV2", "name"),
                    Handle("MutableDenseHashTable", "name")));
}

TEST_F(ResourcesTest, ResourcesOfDifferentKindsDoNot) {
  const Node* iterator = Handle("IteratorV2", "name");
  EXPECT_TRUE(Share(iterator, Handle("Iterator", "name")));
  for (const char* op : {"MultiDeviceIterator", "HashTableV2", "VarHandleOp",
                         "VariableV2", "FIFOQueueV2"}) {
    EXPECT_FALSE(Share(iterator, Handle(op, "name"))) << op;
  }
}

TEST_F(ResourcesTest, WithoutASharedNameMostResourcesBelongToTheirNode) {
  for (const char* op :
       {"IteratorV2", "OneShotIterator", "MultiDeviceIterator", "HashTableV2",
        "MutableHashTableV2", "VariableV2", "FIFOQueueV2"}) {
    EXPECT_FALSE(Share(Handle(op, ""), Handle(op, ""))) << op;
  }
}

TEST_F(ResourcesTest, WithoutASharedNameResourceVariablesAreOneVariable) {
  EXPECT_TRUE(Share(Handle("VarHandleOp", ""), Handle("VarHandleOp", "")));
}

TEST_F(ResourcesTest, AnonymousResourcesBelongToTheirNode) {
  const std::string anonymous = ResourceHandle::ANONYMOUS_NAME;
  for (const char* op : {"VarHandleOp", "MultiDeviceIterator"}) {
    EXPECT_FALSE(Share(Handle(op, anonymous), Handle(op, anonymous))) << op;
  }
}

TEST_F(ResourcesTest, TheNodeMayNameTheResource) {
  const Node* variable = graph_.RefVariable("v");
  EXPECT_TRUE(Share(variable, Handle("VariableV2", "v")));
  const Node* table = graph_.Lone("table", "MutableHashTableV2",
                                  {{"use_node_name_sharing", Value(true)}});
  EXPECT_TRUE(Share(table, Handle("MutableHashTableV2", "table")));
  const Node* other = graph_.Lone("other", "MutableHashTableV2",
                                  {{"use_node_name_sharing", Value(false)}});
  EXPECT_FALSE(Share(other, Handle("MutableHashTableV2", "other")));
}

TEST_F(ResourcesTest, EachDeviceHasItsOwnResources) {
  Node* first = Handle("IteratorV2", "name");
  Node* second = Handle("IteratorV2", "name");
  first->set_requested_device("/job:worker/task:0");
  second->set_requested_device("/job:worker/task:1");
  EXPECT_FALSE(Share(first, second));
  second->set_requested_device("/job:worker/task:0/device:CPU:0");
  EXPECT_TRUE(Share(first, second));
  // This one may be on either device.
  second->set_requested_device("/job:worker/task:1");
  Handle("IteratorV2", "name");
  EXPECT_TRUE(Share(first, second));
}

TEST_F(ResourcesTest, TheDefaultContainerHasTheNameOfTheJob) {
  Node* first = Handle("IteratorV2", "name");
  Node* second = Handle("IteratorV2", "name", "worker");
  EXPECT_FALSE(Share(first, second));
  second->set_requested_device("/job:worker/task:1");
  EXPECT_TRUE(Share(first, second));
}

TEST_F(ResourcesTest, UsesOfAllHandlesCount) {
  Node* first = Handle("IteratorV2", "name");
  Node* second = Handle("IteratorV2", "name");
  const Node* a = graph_.GetNext("a", second);
  const Node* b = graph_.GetNext("b", first);
  EXPECT_EQ(UsersOf(first), (Strings{"a", "b"}));
  const Resources resources(*graph_.get());
  EXPECT_EQ(resources.IteratorOf(*a), first);
  EXPECT_EQ(resources.IteratorOf(*b), first);
  EXPECT_EQ(Resources::HandleOfInput(*a, 0), second);
}

TEST_F(ResourcesTest, AHandlePassesThroughOps) {
  Node* iterator = Handle("IteratorV2", "name");
  NodeBuilder identity("identity", "Identity");
  identity.Input(iterator);
  Node* identities =
      graph_.IdentityN("identities", {graph_.Finalize(&identity), iterator});
  NodeBuilder enter("enter", "Enter");
  enter.Input(TestGraph::Out{identities, 1}).Attr("frame_name", "frame");
  const Node* next = graph_.GetNext("next", graph_.Finalize(&enter));
  EXPECT_EQ(UsersOf(iterator),
            (Strings{"identity", "identities", "identities", "enter", "next"}));
  EXPECT_EQ(Resources(*graph_.get()).IteratorOf(*next), iterator);
}

TEST_F(ResourcesTest, AReferencePassesThroughUpdates) {
  Node* variable = graph_.RefVariable("v");
  NodeBuilder add("add", "AssignAdd");
  add.Input(variable).Input(graph_.Const("one", 1));
  NodeBuilder identity("identity", "Identity");
  identity.Input(graph_.Finalize(&add));
  graph_.Neg("neg", graph_.Finalize(&identity));
  EXPECT_EQ(UsersOf(variable), (Strings{"add", "identity"}));
}

TEST_F(ResourcesTest, AHandleFromAnUnknownOpIsAResourceOfItsOwn) {
  Node* iterator = Handle("IteratorV2", "name");
  NodeBuilder merge("merge", "Merge");
  merge.Input(TestGraph::Outs{iterator, Handle("IteratorV2", "other")});
  Node* merged = graph_.Finalize(&merge);
  const Node* next = graph_.GetNext("next", merged);
  const Resources resources(*graph_.get());
  EXPECT_EQ(resources.IteratorOf(*next), merged);
  EXPECT_EQ(UsersOf(iterator), Strings{"merge"});
}

TEST_F(ResourcesTest, TheTakeOfAStageReadsNoIterator) {
  const Node* take = graph_.Take("stage");
  EXPECT_EQ(Resources(*graph_.get()).IteratorOf(*take), take);
}

TEST_F(ResourcesTest, NodesThatDoNotCountShareAndUseNothing) {
  Node* later = Handle("IteratorV2", "name");
  Node* first = Handle("IteratorV2", "name");
  graph_.GetNext("a", first);
  const Node* b = graph_.GetNext("b", first);
  const NodeFilter counts(
      [later, b](const Node& node) { return &node != later && &node != b; });
  EXPECT_EQ(Resources(*graph_.get(), counts).OwnerOf(*first), first);
  EXPECT_EQ(UsersOf(first, counts), Strings{"a"});
}

TEST_F(ResourcesTest, AFunctionMayNameAResource) {
  graph_.AddFunction(FDH::Define("names_table", {}, {"y: int64"}, {},
                                 {{{"t"},
                                   "MutableHashTableV2",
                                   {},
                                   {{"shared_name", "name"},
                                    {"key_dtype", DT_INT64},
                                    {"value_dtype", DT_INT64}}},
                                  {{"y"}, "LookupTableSizeV2", {"t"}, {}}}));
  graph_.AddFunction(FDH::Define("calls", {}, {"y: int64"}, {},
                                 {{{"y"},
                                   "StatefulPartitionedCall",
                                   {},
                                   {{"Tin", DataTypeSlice{}},
                                    {"Tout", DataTypeSlice{DT_INT64}},
                                    {"f", FDH::FunctionRef("names_table")}}}}));
  Node* table = Handle("MutableHashTableV2", "name");
  AttrValue function;
  function.mutable_func()->set_name("calls");
  const Node* call =
      graph_.Lone("call", "StatefulPartitionedCall", {{"f", function}});
  EXPECT_EQ(UsersOf(table), Strings{"call"});
  EXPECT_EQ(UsersOf(Handle("MutableHashTableV2", "other")), Strings());
  EXPECT_EQ(Resources(*graph_.get()).NamedBy(*call),
            std::vector<const Node*>{table});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
