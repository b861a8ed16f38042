// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/same_function.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Nodes = std::vector<FDH::Node>;

FDH::Node Read(const std::string& name, std::vector<std::string> after = {}) {
  return {{name},
          "ReadVariableOp",
          {"counter"},
          {{"dtype", DT_INT64}},
          std::move(after)};
}

FDH::Node Add(const std::string& name, const std::string& x,
              const std::string& y) {
  return {{name}, "AddV2", {x, y}, {{"T", DT_INT64}}};
}

FDH::Node Assign(const std::string& name, const std::string& value,
                 std::vector<std::string> after) {
  return {{name},
          "AssignVariableOp",
          {"counter", value},
          {{"dtype", DT_INT64}},
          std::move(after)};
}

FunctionDef Function(const Nodes& nodes, const std::string& output,
                     const std::vector<std::string>& effects) {
  std::vector<std::pair<std::string, std::string>> control;
  for (const std::string& effect : effects)
    control.emplace_back(effect, effect);
  return FDH::Create("f", {"counter: resource"}, {"out: int64"}, {}, nodes,
                     {{"out", output}}, control);
}

bool IsSame(const FunctionDef& a, const FunctionDef& b) {
  const FunctionLibraryDefinition library(OpRegistry::Global(), {});
  return IsSameFunction(a, {0}, b, {0}, library);
}

// Reads twice, adds the two, and assigns the sum.
FunctionDef Counts() {
  return Function(
      {Read("one"), Read("two"), Add("sum", "one:value:0", "two:value:0"),
       Assign("assign", "sum:z:0", {"one", "two"})},
      "sum:z:0", {"one", "two", "assign"});
}

TEST(SameFunctionTest, NamesAndTheOrderOfControlInputsDoNotMatter) {
  EXPECT_TRUE(IsSame(Counts(), Counts()));
  EXPECT_TRUE(IsSame(Counts(), Function({Read("z"), Read("y"),
                                         Add("a", "z:value:0", "y:value:0"),
                                         Assign("b", "a:z:0", {"y", "z"})},
                                        "a:z:0", {"b", "y", "z"})));
}

TEST(SameFunctionTest, ANoOpStandsForWhatItWaitsFor) {
  EXPECT_TRUE(
      IsSame(Counts(), Function({Read("one"),
                                 Read("two"),
                                 Add("sum", "one:value:0", "two:value:0"),
                                 {{"both"}, "NoOp", {}, {}, {"one", "two"}},
                                 Assign("assign", "sum:z:0", {"both"}),
                                 {{"all"}, "NoOp", {}, {}, {"assign", "both"}}},
                                "sum:z:0", {"all"})));
}

TEST(SameFunctionTest, TwoNodesAreNotOne) {
  EXPECT_FALSE(
      IsSame(Counts(), Function({Read("one"), Read("two"),
                                 Add("sum", "one:value:0", "one:value:0"),
                                 Assign("assign", "sum:z:0", {"one", "two"})},
                                "sum:z:0", {"one", "two", "assign"})));
}

TEST(SameFunctionTest, WhatANodeWaitsForMatters) {
  const auto reads_after = [](std::vector<std::string> after) {
    return Function({Read("one"), Assign("assign", "one:value:0", {"one"}),
                     Read("two", std::move(after)),
                     Add("sum", "one:value:0", "two:value:0")},
                    "sum:z:0", {"assign"});
  };
  EXPECT_TRUE(IsSame(reads_after({"assign"}), reads_after({"assign"})));
  EXPECT_FALSE(IsSame(reads_after({"assign"}), reads_after({})));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
