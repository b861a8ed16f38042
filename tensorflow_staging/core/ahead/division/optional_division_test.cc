// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/optional_division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow_staging/core/testing/function_text.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Strings = std::vector<std::string>;

const std::vector<StepInput> kInputs = {{InputKind::kIterator, "it"},
                                        {InputKind::kVariable, "emb"}};

FDH::Node Element(const std::string& op, const std::string& name,
                  const std::string& from) {
  return {{name},
          op,
          {from},
          {{"output_types", DataTypeVector{DT_STRING}},
           {"output_shapes", std::vector<PartialTensorShape>{{}}}}};
}

// Trains if there is an element; `condition` decides, and `more` is computed beside.
FunctionDef Step(const std::string& condition = "has:has_value:0",
                 const std::vector<FDH::Node>& more = {}) {
  std::vector<FDH::Node> nodes = {
      Element("IteratorGetNextAsOptional", "next", "iterator"),
      {{"has"}, "OptionalHasValue", {"next:optional:0"}, {}},
      {{"both"}, "LogicalAnd", {"has:has_value:0", "has:has_value:0"}, {}},
      {{"train"},
       "If",
       {condition, "next:optional:0", "weights"},
       {{"Tcond", DT_BOOL},
        {"Tin", DataTypeVector{DT_VARIANT, DT_RESOURCE}},
        {"Tout", DataTypeVector{DT_FLOAT}},
        {"then_branch", FDH::FunctionRef("values")},
        {"else_branch", FDH::FunctionRef("none")},
        {"output_shapes", std::vector<PartialTensorShape>{{}}}}}};
  nodes.insert(nodes.end(), more.begin(), more.end());
  return FDH::Create(
      "step", {"iterator: resource", "weights: resource"},
      {"loss: float", "has_next: bool"}, {}, nodes,
      {{"loss", "train:output:0"}, {"has_next", "has:has_value:0"}},
      {{"read", "next"}, {"train", "train"}});
}

// gather(weights, hash(optional.get_value())).
FunctionDef Values(const std::vector<FDH::Node>& more = {}) {
  std::vector<FDH::Node> nodes = {
      Element("OptionalGetValue", "value", "optional"),
      {{"hash"},
       "StringToHashBucketFast",
       {"value:components:0"},
       {{"num_buckets", int64_t{10}}}},
      {{"gather"},
       "ResourceGather",
       {"weights", "hash:output:0"},
       {{"dtype", DT_FLOAT}, {"Tindices", DT_INT64}}}};
  nodes.insert(nodes.end(), more.begin(), more.end());
  return FDH::Create("values", {"optional: variant", "weights: resource"},
                     {"loss: float"}, {}, nodes, {{"loss", "gather:output:0"}},
                     {{"value", more.empty() ? "value" : more[0].ret[0]}});
}

FunctionDef None() {
  return FDH::Create(
      "none", {"optional: variant", "weights: resource"}, {"loss: float"}, {},
      {{{"zero"}, "Const", {}, {{"dtype", DT_FLOAT}, {"value", Tensor(0.0f)}}}},
      {{"loss", "zero:output:0"}});
}

StepDivision Divide(const FunctionDef& step, const FunctionDef& values,
                    const FunctionDef& none = None(),
                    const std::vector<StepInput>& inputs = kInputs) {
  FunctionDefLibrary proto;
  for (const FunctionDef& function : {step, values, none}) {
    *proto.add_function() = function;
  }
  const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
  StepDivision division;
  TF_EXPECT_OK(DivideStep(step, library, inputs, "p_", &division));
  return division;
}

std::map<std::string, FunctionDef> ByName(const StepDivision& division) {
  std::map<std::string, FunctionDef> functions;
  for (const FunctionDef& function : division.functions.function()) {
    functions[function.signature().name()] = function;
  }
  return functions;
}

TEST(OptionalDivisionTest, TheBranchIsDivided) {
  const StepDivision division = Divide(Step(), Values());
  ASSERT_EQ(division.why_not, "");
  const std::map<std::string, FunctionDef> functions = ByName(division);
  EXPECT_EQ(division.ahead_inputs, std::vector<int>{0});
  EXPECT_EQ(division.buffer_input, 0);
  EXPECT_EQ(division.nodes_ahead, (Strings{"value", "hash"}));
  const Strings ahead = NodesOf(functions.at(division.ahead));
  EXPECT_NE(std::find(ahead.begin(), ahead.end(),
                      "value = IteratorGetNext(optional,)"),
            ahead.end());

  const FunctionDef& rest = functions.at(division.rest);
  EXPECT_EQ(NodesOf(rest),
            (Strings{"next = StepBufferTakeIfAny(iterator,)",
                     "train = If(next:has_record:0,next:record:0,weights,)"}));
  EXPECT_EQ(rest.ret().at("has_next"), "next:has_record:0");
  const NodeDef* conditional = nullptr;
  for (const NodeDef& node : rest.node_def()) {
    if (node.op() == "If") conditional = &node;
  }
  ASSERT_NE(conditional, nullptr);
  EXPECT_EQ(conditional->attr().at("Tin").list().type(0), DT_RESOURCE);
  const FunctionDef& values =
      functions.at(conditional->attr().at("then_branch").func().name());
  EXPECT_EQ(NodesOf(values),
            (Strings{"gather = ResourceGather(weights,value:values:0,)",
                     "value = StepBufferTake(optional,)"}));
  const FunctionDef& none =
      functions.at(conditional->attr().at("else_branch").func().name());
  for (const FunctionDef& branch : {values, none}) {
    EXPECT_EQ(branch.signature().input_arg(0).type(), DT_RESOURCE);
  }
}

TEST(OptionalDivisionTest, OtherUsesOfTheOptional) {
  const FDH::Node again = Element("OptionalGetValue", "again", "optional");
  const FDH::Node beside =
      Element("OptionalGetValue", "beside", "next:optional:0");
  const struct {
    FunctionDef step, values, none;
    std::string why;
  } tests[] = {
      {Step(), Values({again}), None(), "other than by one get_value()"},
      {Step("has:has_value:0", {beside}), Values(), None(),
       "other than by next()"},
  };
  for (const auto& test : tests) {
    // What is not used does not run.
    FunctionDef step = test.step;
    if (step.node_def().size() > 4) {
      (*step.mutable_control_ret())["beside"] = "beside";
      step.mutable_signature()->add_control_output("beside");
    }
    const StepDivision division = Divide(step, test.values, test.none);
    EXPECT_NE(division.why_not.find(test.why), std::string::npos)
        << division.why_not << " does not say: " << test.why;
    EXPECT_EQ(division.functions.function_size(), 0);
  }
}

TEST(OptionalDivisionTest, WhatIsNotUsedGoes) {
  const StepDivision division =
      Divide(Step("has:has_value:0",
                  {Element("OptionalGetValue", "unused", "next:optional:0")}),
             Values());
  ASSERT_EQ(division.why_not, "");
  const FunctionDef rest = ByName(division).at(division.rest);
  for (const NodeDef& node : rest.node_def()) {
    EXPECT_NE(node.name(), "unused");
    EXPECT_NE(node.name(), "both");
  }
}

TEST(OptionalDivisionTest, TwoIteratorsAreNotDivided) {
  const StepDivision division =
      Divide(Step(), Values(), None(),
             {{InputKind::kIterator, "a"}, {InputKind::kIterator, "b"}});
  EXPECT_NE(division.why_not, "");
}

TEST(OptionalDivisionTest, ABranchThatIsNotInTheLibraryIsAnError) {
  FunctionDef values = Values();
  values.mutable_signature()->set_name("other");
  FunctionDefLibrary proto;
  for (const FunctionDef& function : {Step(), values, None()}) {
    *proto.add_function() = function;
  }
  const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
  StepDivision division;
  EXPECT_EQ(DivideStep(Step(), library, kInputs, "p_", &division).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
