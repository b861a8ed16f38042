// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

// The shapes of the first region's boundary, in its order.
std::vector<std::string> ShapesOf(TestGraph* graph) {
  const StagePartition partition(*graph->get());
  std::vector<std::string> texts;
  for (const PartialTensorShape& shape :
       BoundaryShapes(*graph->get(), partition.regions().front())) {
    texts.push_back(shape.DebugString());
  }
  return texts;
}

Node* VectorSource(TestGraph* graph, const PartialTensorShape& shape) {
  NodeBuilder iterator("iterator", "IteratorV2");
  iterator.Attr("output_types", DataTypeVector{DT_INT64})
      .Attr("output_shapes", std::vector<PartialTensorShape>{shape})
      .Attr("shared_name", "")
      .Attr("container", "");
  NodeBuilder next("next", "IteratorGetNext");
  next.Input(graph->Finalize(&iterator))
      .Attr("output_types", DataTypeVector{DT_INT64})
      .Attr("output_shapes", std::vector<PartialTensorShape>{shape});
  return graph->Finalize(&next);
}

TEST(BoundaryShapesTest, ShapesFollowFromTheSource) {
  TestGraph graph;
  Node* next = VectorSource(&graph, PartialTensorShape({-1, 3}));
  Node* a = graph.Neg("a", next);
  const Tensor axis(0);
  NodeBuilder axis_builder("axis", "Const");
  axis_builder.Attr("dtype", DT_INT32).Attr("value", axis);
  NodeBuilder expand("expand", "ExpandDims");
  expand.Input(a).Input(graph.Finalize(&axis_builder));
  graph.Target("target", {a, next});
  graph.Target("other", {graph.Finalize(&expand)});
  EXPECT_EQ(ShapesOf(&graph),
            (std::vector<std::string>{"[?,3]", "[1,?,3]", "[?,3]"}));
}

TEST(BoundaryShapesTest, AnUnknownShapeStaysUnknown) {
  TestGraph graph;
  Node* next = VectorSource(&graph, PartialTensorShape());
  graph.Target("target", {graph.Neg("a", next)});
  EXPECT_EQ(ShapesOf(&graph),
            (std::vector<std::string>{"<unknown>", "<unknown>"}));
}

TEST(BoundaryShapesTest, AContradictoryShapeIsUnknown) {
  TestGraph graph;
  Node* next = VectorSource(&graph, PartialTensorShape({2, 3}));
  Node* bad = graph.AddN("bad", {next, graph.Const("scalar", 1)});
  graph.Target("target", {graph.Neg("after", bad)});
  EXPECT_EQ(ShapesOf(&graph), (std::vector<std::string>{"<unknown>", "[2,3]"}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
