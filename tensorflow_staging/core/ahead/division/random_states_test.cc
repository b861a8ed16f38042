// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/random_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/step_partition.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Nodes = std::vector<FDH::Node>;

FDH::Node Binary(const char* name, const char* op, const char* x,
                 const char* y) {
  return {{name}, op, {x, y}, {{"T", DT_INT64}}};
}

// The partition of a step that reads a counter as "counted" and yields "out".
class Partition {
 public:
  Partition(Nodes nodes, const std::vector<std::string>& effects) {
    nodes.push_back({{"next"},
                     "IteratorGetNext",
                     {"iterator"},
                     {{"output_types", DataTypeVector{DT_INT64}},
                      {"output_shapes", std::vector<PartialTensorShape>{
                                            PartialTensorShape({})}}}});
    nodes.push_back(
        {{"counted"}, "ReadVariableOp", {"counter"}, {{"dtype", DT_INT64}}});
    nodes.push_back(
        {{"weight"}, "ReadVariableOp", {"weights"}, {{"dtype", DT_INT64}}});
    nodes.push_back(FDH::Const("one", int64_t{1}));
    std::vector<std::pair<std::string, std::string>> control = {
        {"read", "next"}, {"counted", "counted"}};
    for (const std::string& effect : effects) {
      control.emplace_back(effect, effect);
    }
    const FunctionDef step = FDH::Create(
        "step",
        {"iterator: resource", "counter: resource", "weights: resource"},
        {"out: int64"}, {}, nodes, {{"out", "out:z:0"}}, control);
    FunctionDefLibrary proto;
    *proto.add_function() = step;
    library_ = std::make_unique<FunctionLibraryDefinition>(OpRegistry::Global(),
                                                           proto);
    TF_EXPECT_OK(FindCallSites(*library_->Find("step"), *library_, &root_));
    TF_EXPECT_OK(PartitionStep(*root_,
                               {{InputKind::kIterator, "it"},
                                {InputKind::kVariable, "counter"},
                                {InputKind::kVariable, "weights"}},
                               /*loop=*/nullptr, *library_, &found_));
    EXPECT_EQ(found_.why_not, "");
  }

  const std::vector<RandomState>& states() const {
    return found_.random_states;
  }
  // The names of a set of nodes of the step, sorted.
  std::vector<std::string> Names(NodeSet SiteSides::* set) const {
    std::vector<std::string> names;
    for (const Node* node : found_.sites.at(root_.get()).*set) {
      names.push_back(node->name());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::unique_ptr<FunctionLibraryDefinition> library_;
  std::unique_ptr<CallSite> root_;
  StepPartition found_;
};

FDH::Node Assign(const char* value) {
  return {{"assign"},
          "AssignVariableOp",
          {"counter", value},
          {{"dtype", DT_INT64}},
          {"counted"}};
}

// weight * (element^2 + counter)
Nodes ComputeWithElementAhead() {
  return {Binary("square", "Mul", "next:components:0", "next:components:0"),
          Binary("sum", "AddV2", "square:z:0", "counted:value:0"),
          Binary("out", "Mul", "sum:z:0", "weight:value:0")};
}

TEST(RandomStatesTest, ACounterThatMeetsAnElementIsAhead) {
  Nodes nodes = ComputeWithElementAhead();
  nodes.push_back(Binary("counts", "AddV2", "counted:value:0", "one:output:0"));
  nodes.push_back(Assign("counts:z:0"));
  const Partition partition(nodes, {"assign"});
  EXPECT_EQ(partition.states(), std::vector<RandomState>({{1, DT_INT64}}));
  EXPECT_EQ(partition.Names(&SiteSides::twice),
            (std::vector<std::string>{"assign", "counted"}));
  EXPECT_EQ(partition.Names(&SiteSides::repeated),
            (std::vector<std::string>{"counted", "counts"}));
  const std::vector<std::string> ahead = partition.Names(&SiteSides::ahead);
  for (const char* node : {"assign", "counted", "next", "sum"}) {
    EXPECT_TRUE(std::count(ahead.begin(), ahead.end(), node) > 0) << node;
  }
}

TEST(RandomStatesTest, ACounterThatAddsIsAhead) {
  Nodes nodes = ComputeWithElementAhead();
  nodes.push_back({{"assign"},
                   "AssignAddVariableOp",
                   {"counter", "one:output:0"},
                   {{"dtype", DT_INT64}},
                   {"counted"}});
  EXPECT_EQ(Partition(nodes, {"assign"}).states().size(), 1);
}

TEST(RandomStatesTest, AVariableThatIsOnlyReadStaysInTheStep) {
  EXPECT_TRUE(Partition(ComputeWithElementAhead(), {}).states().empty());
}

// What is assigned must be made of the counter alone.
TEST(RandomStatesTest, ACounterThatSomethingElseMovesStaysInTheStep) {
  for (const char* by : {"square:z:0", "weight:value:0"}) {
    Nodes nodes = ComputeWithElementAhead();
    nodes.push_back(Binary("counts", "AddV2", "counted:value:0", by));
    nodes.push_back(Assign("counts:z:0"));
    EXPECT_TRUE(Partition(nodes, {"assign"}).states().empty()) << by;
  }
}

TEST(RandomStatesTest, ACounterThatMeetsNoElementAheadStaysInTheStep) {
  const Nodes nodes = {
      Binary("square", "Mul", "next:components:0", "next:components:0"),
      Binary("hidden", "Mul", "square:z:0", "weight:value:0"),
      Binary("out", "AddV2", "hidden:z:0", "counted:value:0"),
      Binary("counts", "AddV2", "counted:value:0", "one:output:0"),
      Assign("counts:z:0")};
  EXPECT_TRUE(Partition(nodes, {"assign"}).states().empty());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
