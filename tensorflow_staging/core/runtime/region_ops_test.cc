// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/region_ops.h"

#include <string>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;

class PythonInGraphTest : public ::testing::Test {
 protected:
  bool MayCall() {
    const Graph& graph = *graph_.get();
    return MayCallPython(graph, graph.flib_def());
  }

  // Adds a function that calls Python.
  void AddPython(const std::string& name) {
    graph_.AddFunction(FDH::Define(name, {}, {"y: int64"}, {},
                                   {{{"y"},
                                     "PyFunc",
                                     {},
                                     {{"token", "t"},
                                      {"Tin", DataTypeSlice{}},
                                      {"Tout", DataTypeSlice{DT_INT64}}}}}));
  }

  // Adds a function that calls another one.
  void AddCaller(const std::string& name, const std::string& called) {
    graph_.AddFunction(FDH::Define(name, {}, {"y: int64"}, {},
                                   {{{"y"},
                                     "StatefulPartitionedCall",
                                     {},
                                     {{"Tin", DataTypeSlice{}},
                                      {"Tout", DataTypeSlice{DT_INT64}},
                                      {"f", FDH::FunctionRef(called)}}}}));
  }

  // Adds an op with the function in the attribute `attr`.
  void AddOp(const std::string& op, const std::string& attr,
             const std::string& function) {
    AttrValue value;
    value.mutable_func()->set_name(function);
    graph_.Lone("op", op, {{attr, value}});
  }

  TestGraph graph_;
};

TEST_F(PythonInGraphTest, OpsThatCallPython) {
  EXPECT_FALSE(MayCall());
  graph_.Stage("stage", {graph_.Const("record", 1)});
  EXPECT_FALSE(MayCall());
  for (const char* op : {"PyFunc", "PyFuncStateless", "EagerPyFunc"}) {
    TestGraph with_python;
    with_python.Const("record", 1);
    with_python.Lone("python", op);
    const Graph& graph = *with_python.get();
    EXPECT_TRUE(MayCallPython(graph, graph.flib_def())) << op;
  }
}

TEST_F(PythonInGraphTest, AFunctionThatNothingCallsDoesNotCount) {
  AddPython("python");
  graph_.Const("record", 1);
  EXPECT_FALSE(MayCall());
}

TEST_F(PythonInGraphTest, AFunctionThatAFunctionCallsCounts) {
  AddPython("python");
  AddCaller("inner", "python");
  AddCaller("outer", "inner");
  AddOp("StatefulPartitionedCall", "f", "outer");
  EXPECT_TRUE(MayCall());
}

TEST_F(PythonInGraphTest, AnOpMayBeAFunction) {
  AddPython("python");
  graph_.Lone("call", "python");
  EXPECT_TRUE(MayCall());
}

TEST_F(PythonInGraphTest, FunctionsThatCallEachOtherEnd) {
  AddCaller("a", "b");
  AddCaller("b", "a");
  AddOp("StatefulPartitionedCall", "f", "a");
  EXPECT_FALSE(MayCall());
}

TEST_F(PythonInGraphTest, AFunctionThatTheLibraryLacksDoesNotCount) {
  AddOp("StatefulPartitionedCall", "f", "missing");
  EXPECT_FALSE(MayCall());
}

TEST_F(PythonInGraphTest, TheDatasetOfAOneShotIteratorIsKnown) {
  AddPython("python");
  AddCaller("dataset", "python");
  graph_.AddFunction(FDH::Define("other", {}, {}, {}, {}));
  AddOp("OneShotIterator", "dataset_factory", "other");
  EXPECT_FALSE(MayCall());
  EXPECT_FALSE(UsesIteratorOfOtherRun(*graph_.get()));
  AttrValue value;
  value.mutable_func()->set_name("dataset");
  graph_.Lone("iterator", "OneShotIterator", {{"dataset_factory", value}});
  EXPECT_TRUE(MayCall());
}

TEST_F(PythonInGraphTest, AnIteratorOfAnotherRunMayHaveAnyDataset) {
  graph_.Source("next");
  EXPECT_TRUE(UsesIteratorOfOtherRun(*graph_.get()));
  EXPECT_FALSE(MayCall());
  AddPython("python");
  EXPECT_TRUE(MayCall());
}

TEST(RecordMovesTest, FromAnIteratorThroughIdentitiesToABuffer) {
  TestGraph graph;
  graph.Put("put", "stage",
            {graph.Identity("identity", graph.Source("next")),
             graph.Const("constant", 1)});
  EXPECT_TRUE(OnlyMovesRecords(*graph.get()));
}

TEST(RecordMovesTest, FromBufferToBuffer) {
  TestGraph graph;
  graph.Put("put", "second", {graph.Take("first")});
  EXPECT_TRUE(OnlyMovesRecords(*graph.get()));
}

TEST(RecordMovesTest, HowOftenARunMayWaitForARecord) {
  TestGraph graph;
  graph.Put("constant", "stage", {graph.Const("value", 1)});
  EXPECT_EQ(NumReads(*graph.get()), 0);
  graph.Put("put", "second", {graph.Source("next"), graph.Take("first")});
  EXPECT_EQ(NumReads(*graph.get()), 2);
}

TEST(RecordMovesTest, AnOpThatComputes) {
  TestGraph graph;
  graph.Put("put", "stage", {graph.Neg("neg", graph.Source("next"))});
  EXPECT_FALSE(OnlyMovesRecords(*graph.get()));
}

// For example the transfer from another device.
TEST(RecordMovesTest, AnOpThatIsNotKnown) {
  TestGraph graph;
  graph.Put("put", "stage", {graph.Source("next")});
  graph.Lone("python", "PyFunc");
  EXPECT_FALSE(OnlyMovesRecords(*graph.get()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
