// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/loop_draws.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;

FDH::Node Algorithm(int algorithm) {
  return {{"algorithm"},
          "Const",
          {},
          {{"dtype", DT_INT32}, {"value", Tensor(int32_t{algorithm})}}};
}

// A branch that gets an amount and a state, from which it draws.
FunctionDef Branch(const char* name, const FDH::Node& algorithm,
                   std::vector<FDH::Node> more = {}) {
  std::vector<FDH::Node> nodes = {
      algorithm,
      {{"draw"}, "RngReadAndSkip", {"state", "algorithm:output:0", "skip"}}};
  nodes.insert(nodes.end(), more.begin(), more.end());
  return FDH::Create(name, {"skip: uint64", "state: resource"}, {"out: uint64"},
                     {}, nodes, {{"out", "skip"}}, {{"control", "draw"}});
}

// What is known of the draws of a conditional with these branches.
std::optional<int> OfConditional(const FunctionDef& then_branch,
                                 const FunctionDef& else_branch) {
  FunctionDefLibrary proto;
  *proto.add_function() = then_branch;
  *proto.add_function() = else_branch;
  const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
  Graph graph(library);
  const auto name = [](const FunctionDef& function) {
    NameAttrList list;
    list.set_name(function.signature().name());
    return list;
  };
  NodeDef def;
  TF_CHECK_OK(NodeDefBuilder("if", "If")
                  .Input("choice", 0, DT_BOOL)
                  .Input({{"skip", 0, DT_UINT64}, {"state", 0, DT_RESOURCE}})
                  .Attr("Tcond", DT_BOOL)
                  .Attr("Tin", {DT_UINT64, DT_RESOURCE})
                  .Attr("Tout", {DT_UINT64})
                  .Attr("then_branch", name(then_branch))
                  .Attr("else_branch", name(else_branch))
                  .Finalize(&def));
  def.clear_input();
  Status status;
  const Node* node = graph.AddNode(def, &status);
  TF_CHECK_OK(status);
  return AlgorithmOfDraws(*node, /*input=*/2, library);
}

TEST(LoopDrawsTest, FindsTheAlgorithm) {
  EXPECT_EQ(OfConditional(Branch("a", Algorithm(2)), Branch("b", Algorithm(2))),
            2);
}

TEST(LoopDrawsTest, BranchesNeedOneAlgorithm) {
  EXPECT_EQ(OfConditional(Branch("a", Algorithm(1)), Branch("b", Algorithm(2))),
            std::nullopt);
}

TEST(LoopDrawsTest, TheAlgorithmHasToBeKnown) {
  const FunctionDef branch =
      Branch("a", FDH::Node{{"algorithm"},
                            "Cast",
                            {"skip"},
                            {{"SrcT", DT_UINT64}, {"DstT", DT_INT32}}});
  EXPECT_EQ(OfConditional(branch, branch), std::nullopt);
}

TEST(LoopDrawsTest, AnythingElseMayChangeTheState) {
  const FunctionDef draws = Branch("a", Algorithm(1));
  const FunctionDef reads =
      Branch("b", Algorithm(1),
             {{{"read"}, "ReadVariableOp", {"state"}, {{"dtype", DT_INT64}}}});
  EXPECT_EQ(OfConditional(draws, draws), 1);
  EXPECT_EQ(OfConditional(draws, reads), std::nullopt);
  EXPECT_EQ(OfConditional(reads, draws), std::nullopt);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
