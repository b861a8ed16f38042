// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/stages_before.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Before = std::vector<std::vector<int>>;

// The stages of these names, each with one Put and no feeds.
std::vector<std::vector<std::string>> StagesCalled(
    const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> stages;
  for (const std::string& name : names) {
    stages.push_back({name + "/TensorBufferPut"});
  }
  return stages;
}

TEST(StagesBeforeTest, AStageWithItsOwnSourceHasNoneBefore) {
  TestGraph graph;
  graph.Stage("a", {graph.Source("x")});
  graph.Stage("b", {graph.Source("y")});
  EXPECT_EQ(StagesBefore(*graph.get(), StagesCalled({"a", "b"})),
            (Before{{}, {}}));
}

TEST(StagesBeforeTest, OnlyThoseDirectlyBeforeCount) {
  TestGraph graph;
  Node* a = graph.Stage("a", {graph.Source("x")});
  Node* b = graph.Stage("b", {graph.Neg("on_the_way", a)});
  Node* c = graph.Stage("c", {graph.Source("y")});
  graph.Stage("d", {c, b});
  EXPECT_EQ(StagesBefore(*graph.get(), StagesCalled({"d", "c", "b", "a"})),
            (Before{{1, 2}, {}, {3}, {}}));
}

TEST(StagesBeforeTest, AllPutsOfAStageCount) {
  TestGraph graph;
  Node* a = graph.Stage("a", {graph.Source("x")});
  Node* b = graph.Stage("b", {graph.Source("y")});
  graph.Put("put_a", "join", {a});
  graph.Put("put_b", "join", {b});
  Node* join = graph.Take("join");
  graph.Stage("last", {join});
  auto stages = StagesCalled({"a", "b", "last"});
  stages.push_back({"put_a", "put_b"});
  EXPECT_EQ(StagesBefore(*graph.get(), stages), (Before{{}, {}, {3}, {0, 1}}));
}

TEST(StagesBeforeTest, FeedsAndControlInputsCount) {
  TestGraph graph;
  Node* a = graph.Stage("a", {graph.Source("x")});
  Node* b = graph.Stage("b", {graph.Source("y")});
  Node* fed = graph.Placeholder("fed");
  graph.Neg("value", a);
  graph.AddControl(b, fed);
  graph.Stage("last", {fed});
  auto stages = StagesCalled({"a", "b", "last"});
  EXPECT_EQ(StagesBefore(*graph.get(), stages), (Before{{}, {}, {1}}));
  stages.back().push_back("value");
  EXPECT_EQ(StagesBefore(*graph.get(), stages), (Before{{}, {}, {0, 1}}));
}

TEST(StagesBeforeTest, LoopsEndAndUnknownNamesAreIgnored) {
  TestGraph graph;
  Node* a = graph.Stage("a", {graph.Source("x")});
  Node* in_loop = graph.Neg("in_loop", a);
  graph.AddControl(graph.Neg("back", in_loop), in_loop);
  graph.Stage("b", {in_loop});
  auto stages = StagesCalled({"a", "b", "missing"});
  stages.push_back({});
  EXPECT_EQ(StagesBefore(*graph.get(), stages), (Before{{}, {0}, {}, {}}));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
