// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/functions/step_division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace staging {
namespace {

using FDH = FunctionDefHelper;
using Strings = std::vector<std::string>;

FDH::Node GetNext() {
  return {{"next"},
          "IteratorGetNext",
          {"iterator"},
          {{"output_types", DataTypeVector{DT_STRING}},
           {"output_shapes", std::vector<PartialTensorShape>{{}}}}};
}

FDH::Node Hash(const std::string& name, const std::string& text) {
  return {
      {name}, "StringToHashBucketFast", {text}, {{"num_buckets", int64_t{10}}}};
}

FDH::Node Gather(const std::string& name, const std::string& ids) {
  return {{name},
          "ResourceGather",
          {"weights", ids},
          {{"dtype", DT_FLOAT}, {"Tindices", DT_INT64}}};
}

// gather(weights, hash(next(iterator)))
FunctionDef Step() {
  return FDH::Create("step", {"iterator: resource", "weights: resource"},
                     {"out: float"}, {},
                     {GetNext(), Hash("hash", "next:components:0"),
                      Gather("gather", "hash:output:0")},
                     {{"out", "gather:output:0"}}, {{"read", "next"}});
}

std::vector<StepInput> Inputs() {
  return {{InputKind::kIterator, "it"}, {InputKind::kVariable, "emb"}};
}

StepDivision Divide(const std::vector<FunctionDef>& functions,
                    const std::vector<StepInput>& inputs) {
  FunctionDefLibrary proto;
  for (const FunctionDef& function : functions) {
    *proto.add_function() = function;
  }
  const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
  StepDivision division;
  TF_EXPECT_OK(DivideStep(functions[0], library, inputs, "p_", &division));
  return division;
}

const FunctionDef& Find(const StepDivision& division, const std::string& name) {
  for (const FunctionDef& function : division.functions.function()) {
    if (function.signature().name() == name) return function;
  }
  ADD_FAILURE() << "no function " << name;
  return division.functions.function(0);
}

// "name = op(inputs)", sorted.
Strings NodesOf(const FunctionDef& function) {
  Strings nodes;
  for (const NodeDef& node : function.node_def()) {
    std::string text = node.name() + " = " + node.op() + "(";
    for (const std::string& input : node.input()) text += input + ",";
    nodes.push_back(text + ")");
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

TEST(StepDivisionTest, AStepBecomesTwoFunctions) {
  const StepDivision division = Divide({Step()}, Inputs());
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(NodesOf(Find(division, division.ahead)),
            (Strings{"hash = StringToHashBucketFast(next:components:0,)",
                     "next = IteratorGetNext(iterator,)",
                     "staging_put = StepBufferPut(staging_buffer,hash:output:0,"
                     "^next,)"}));
  EXPECT_EQ(NodesOf(Find(division, division.rest)),
            (Strings{"gather = ResourceGather(weights,next:values:0,)",
                     "next = StepBufferTake(iterator,)"}));
  EXPECT_EQ(division.ahead_inputs, std::vector<int>{0});
  ASSERT_EQ(division.record.size(), 1);
  EXPECT_EQ(division.record[0].name, "hash:0");
  EXPECT_EQ(division.record[0].dtype, DT_INT64);
  EXPECT_EQ(division.nodes_ahead, (Strings{"next", "hash"}));
  ASSERT_EQ(division.outside.size(), 1);
  EXPECT_EQ(division.outside[0].name, "gather");
  EXPECT_NE(division.outside[0].why.find("emb"), std::string::npos);
}

TEST(StepDivisionTest, TheSignatureStays) {
  const FunctionDef step = Step();
  const StepDivision division = Divide({step}, Inputs());
  const OpDef& rest = Find(division, division.rest).signature();
  ASSERT_EQ(rest.input_arg_size(), 2);
  EXPECT_EQ(rest.input_arg(0).type(), DT_RESOURCE);
  EXPECT_EQ(rest.input_arg(1).name(), "weights");
  ASSERT_EQ(rest.output_arg_size(), 1);
  EXPECT_EQ(rest.output_arg(0).type(), DT_FLOAT);
}

TEST(StepDivisionTest, ACallIsDividedInPlace) {
  const FunctionDef callee = FDH::Create(
      "callee", {"text: string", "weights: resource"}, {"out: float"}, {},
      {Hash("hash", "text"), Gather("gather", "hash:output:0")},
      {{"out", "gather:output:0"}});
  const FunctionDef step = FDH::Create(
      "step", {"iterator: resource", "weights: resource"}, {"out: float"}, {},
      {GetNext(),
       {{"call"},
        "StatefulPartitionedCall",
        {"next:components:0", "weights"},
        {{"Tin", DataTypeVector{DT_STRING, DT_RESOURCE}},
         {"Tout", DataTypeVector{DT_FLOAT}},
         {"f", FDH::FunctionRef("callee")}}}},
      {{"out", "call:output:0"}}, {{"read", "next"}});
  const StepDivision division = Divide({step, callee}, Inputs());
  EXPECT_EQ(division.why_not, "");
  int ahead = 0, rest = 0;
  for (const auto& [part, origin] : division.origins) {
    if (origin != "callee") continue;
    const Strings nodes = NodesOf(Find(division, part));
    ahead += nodes == Strings{"hash = StringToHashBucketFast(text,)"};
    rest += nodes == Strings{"gather = ResourceGather(weights,carried_1,)"};
  }
  EXPECT_EQ(ahead, 1);
  EXPECT_EQ(rest, 1);
  ASSERT_EQ(division.record.size(), 1);
  EXPECT_EQ(division.record[0].name, "call/hash:0");
}

TEST(StepDivisionTest, ASeededDrawStaysInTheStep) {
  const auto draw = [](const char* name, int64_t seed) {
    return FDH::Node{{name},
                     "RandomShuffle",
                     {"next:components:0"},
                     {{"T", DT_STRING}, {"seed", seed}, {"seed2", int64_t{0}}}};
  };
  FunctionDef step =
      FDH::Create("step", {"iterator: resource", "weights: resource"},
                  {"a: string", "b: string"}, {},
                  {GetNext(), draw("seeded", 7), draw("unseeded", 0)},
                  {{"a", "seeded:output:0"}, {"b", "unseeded:output:0"}},
                  {{"read", "next"}});
  const StepDivision division = Divide({step}, Inputs());
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(division.nodes_ahead, (Strings{"next", "unseeded"}));
}

// A step, what its inputs are, and why it is not staged.
struct NotStaged {
  std::vector<FDH::Node> nodes;
  std::string output;
  std::vector<StepInput> inputs;
  std::string why;
};

TEST(StepDivisionTest, SaysWhyNothingRunsAhead) {
  const std::vector<StepInput> inputs = Inputs();
  const FDH::Node optional = {
      {"next"},
      "IteratorGetNextAsOptional",
      {"iterator"},
      {{"output_types", DataTypeVector{DT_STRING}},
       {"output_shapes", std::vector<PartialTensorShape>{{}}}}};
  const FDH::Node value = {
      {"value"},
      "OptionalGetValue",
      {"next:optional:0"},
      {{"output_types", DataTypeVector{DT_STRING}},
       {"output_shapes", std::vector<PartialTensorShape>{{}}}}};
  for (const NotStaged& test : std::vector<NotStaged>{
           {{GetNext()}, "next:components:0", inputs, "nothing that follows"},
           {{optional, value},
            "value:components:0",
            inputs,
            "other than by next()"},
           {{GetNext()},
            "next:components:0",
            {{InputKind::kIterator, "a"}, {InputKind::kIterator, "b"}},
            "several iterators"},
           {{GetNext()},
            "next:components:0",
            {{InputKind::kOther, "a"}, {InputKind::kOther, "b"}},
            "no argument"}}) {
    const FunctionDef step = FDH::Create(
        "step", {"iterator: resource", "weights: resource"}, {"out: string"},
        {}, test.nodes, {{"out", test.output}}, {{"read", "next"}});
    const StepDivision division = Divide({step}, test.inputs);
    EXPECT_NE(division.why_not.find(test.why), std::string::npos)
        << division.why_not << " does not say: " << test.why;
    EXPECT_EQ(division.functions.function_size(), 0);
  }
}

TEST(StepDivisionTest, InputsThatDoNotFitAreAnError) {
  const FunctionLibraryDefinition library(OpRegistry::Global(), {});
  StepDivision division;
  const Status status = DivideStep(
      Step(), library, {{InputKind::kIterator, "it"}}, "p_", &division);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
