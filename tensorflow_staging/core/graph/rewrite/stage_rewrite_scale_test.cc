// SPDX-License-Identifier: Apache-2.0
//
// Limits the time that the partition and the rewrite of large graphs take. The
// tests measure the CPU time of their own thread, so that other work of the
// machine does not count.

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow_staging/core/graph/partition/stage_partition.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/testing/control_flow_graph.h"
#include "tensorflow_staging/core/testing/test_graph.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kNodes = 200000;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

double SecondsOf(const std::function<void()>& work) {
  const double start = ThreadSeconds();
  work();
  return ThreadSeconds() - start;
}

// A kind of graph. `build` builds one with about `nodes` nodes.
struct Shape {
  const char* name;
  std::function<void(int nodes, TestGraph* graph)> build;
};

std::string Name(const char* prefix, int i) {
  return strings::StrCat(prefix, i);
}

void LongChain(int nodes, TestGraph* graph) {
  Node* last = graph->Source("next");
  for (int i = 0; i < nodes; ++i) last = graph->Neg(Name("n", i), last);
  graph->Target("target", {last});
}

void ManyColumns(int nodes, TestGraph* graph) {
  constexpr int kColumns = 1000;
  Node* next = graph->Source("next", kColumns);
  TestGraph::Outs ends;
  for (int column = 0; column < kColumns; ++column) {
    TestGraph::Out last = {next, column};
    for (int i = 0; i < nodes / kColumns; ++i) {
      last = graph->Neg(strings::StrCat("c", column, "/n", i), last);
    }
    ends.push_back(last);
  }
  graph->Target("target", ends);
}

void ManyBoundaryTensors(int nodes, TestGraph* graph) {
  Node* next = graph->Source("next");
  for (int i = 0; i < nodes / 2; ++i) {
    graph->Target(Name("target", i), {graph->Neg(Name("n", i), next)});
  }
}

void ManyUsersOfOneSource(int nodes, TestGraph* graph) {
  Node* next = graph->Source("next");
  TestGraph::Outs sums;
  for (int i = 0; i < nodes; i += 100) {
    TestGraph::Outs in;
    for (int j = i; j < i + 100; ++j)
      in.push_back(graph->Neg(Name("n", j), next));
    sums.push_back(graph->AddN(Name("sum", i), in));
  }
  graph->Target("target", sums);
}

void MostlyInTheStep(int nodes, TestGraph* graph) {
  Node* last =
      graph->AddN("first", {graph->Source("next"), graph->ReadVariable("v")});
  for (int i = 0; i < nodes; ++i) last = graph->Neg(Name("n", i), last);
}

void ManySources(int nodes, TestGraph* graph) {
  for (int i = 0; i < nodes / 4; ++i) {
    Node* next = graph->Source(Name("next", i));
    graph->Target(Name("target", i), {graph->Neg(Name("n", i), next)});
  }
}

// Each draw is used on both sides because of the one before.
void ChainOfDraws(int nodes, TestGraph* graph) {
  Node* next = graph->Source("next");
  Node* last = graph->Random("first");
  graph->Target("target", {last});
  for (int i = 0; i < nodes / 6; ++i) {
    Node* draw = graph->Random(Name("draw", i));
    graph->Target(Name("target", i),
                  {graph->AddN(Name("n", i), {next, last, draw})});
    last = draw;
  }
}

// Each conditional uses the result of the one before. One in the middle is in
// the step.
void ChainOfConditionals(int nodes, TestGraph* graph) {
  Node* last = graph->Source("next");
  Node* limit = graph->Const("limit", 5);
  for (int i = 0; i < nodes / 10; ++i) {
    if (i == nodes / 20) last = graph->Target("middle", {last});
    TestConditional cond(Name("cond", i),
                         graph->Less(Name("less", i), last, limit), graph);
    last = cond.Result(cond.In(false, last),
                       graph->Neg(Name("neg", i), cond.In(true, last)));
  }
  graph->Target("target", {last});
}

// At the end of an iteration, each variable receives the value of another, so
// that all of them depend on all sources.
void LoopWithManyVariables(int nodes, TestGraph* graph) {
  constexpr int kSources = 10;
  TestGraph::Outs initial;
  for (int i = 0; i < kSources; ++i) {
    initial.push_back(graph->Source(Name("next", i)));
  }
  Node* zero = graph->Const("zero", 0);
  while (static_cast<int>(initial.size()) < nodes / 7) initial.push_back(zero);
  TestLoop loop("loop", initial, graph->Const("limit", 5), graph);
  TestGraph::Outs next(loop.body().begin() + 1, loop.body().end());
  next.push_back(loop.body().front());
  TestGraph::Outs exits;
  for (Node* exit : loop.Close(next)) exits.push_back(exit);
  graph->Target("target", exits);
}

// The lesser of two measurements, since other processes can only add to a time.
double PartitionSeconds(const Shape& shape, int nodes) {
  TestGraph graph;
  shape.build(nodes, &graph);
  const auto partition = [&graph] {
    const StagePartition partition(*graph.get());
  };
  return std::min(SecondsOf(partition), SecondsOf(partition));
}

class StagePartitionScaleTest : public ::testing::TestWithParam<Shape> {};

// Sixteen times as many nodes take 16 times as long if the time is linear, and
// 256 times as long if it is quadratic. A large graph is not in the caches,
// though, and takes several times as long per node where other processes keep
// the memory busy.
TEST_P(StagePartitionScaleTest, TakesSecondsAndIsLinear) {
  const double all = PartitionSeconds(GetParam(), kNodes);
  EXPECT_LT(all, 8);
  EXPECT_LT(all / PartitionSeconds(GetParam(), kNodes / 16), 100);
}

TEST(StageRewriteScaleTest, TakesLessThanThirtySeconds) {
  TestGraph graph;
  ManyBoundaryTensors(kNodes, &graph);
  EXPECT_LT(SecondsOf([&graph] {
              const StagePlan plan(*graph.get(), true, "");
              TF_CHECK_OK(RewriteStages(plan, RewriteOptions(), graph.get()));
            }),
            30);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, StagePartitionScaleTest,
    ::testing::Values(Shape{"LongChain", LongChain},
                      Shape{"ManyColumns", ManyColumns},
                      Shape{"ManyBoundaryTensors", ManyBoundaryTensors},
                      Shape{"ManyUsersOfOneSource", ManyUsersOfOneSource},
                      Shape{"MostlyInTheStep", MostlyInTheStep},
                      Shape{"ManySources", ManySources},
                      Shape{"ChainOfDraws", ChainOfDraws},
                      Shape{"ChainOfConditionals", ChainOfConditionals},
                      Shape{"LoopWithManyVariables", LoopWithManyVariables}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace staging
}  // namespace tensorflow
