// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/step_division.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(StepDivisionTest, AStepBecomesTwoFunctions) {
  const StepDivision division = Divide({Step()}, Inputs());
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(
      NodesOf(Find(division, division.ahead)),
      (Strings{"hash = StringToHashBucketFast(next:components:0,)",
               "next = IteratorGetNext(iterator,)", "staging_done = Const()",
               "staging_end_reads = StagedRunEndReads(^next,)",
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

TEST(StepDivisionTest, SeveralReadsMakeOneRecord) {
  FDH::Node second = GetNext();
  second.ret[0] = "second";
  second.dep = {"next"};
  FDH::Node other = GetNext();
  other.ret[0] = "other";
  other.arg[0] = "iterator2";
  const FunctionDef step = FDH::Create(
      "step",
      {"iterator: resource", "weights: resource", "iterator2: resource"},
      {"a: float", "b: float", "c: string"}, {},
      {GetNext(), second, other, Hash("hash", "next:components:0"),
       Hash("hash2", "second:components:0"), Gather("gather", "hash:output:0"),
       Gather("gather2", "hash2:output:0")},
      {{"a", "gather:output:0"},
       {"b", "gather2:output:0"},
       {"c", "other:components:0"}},
      {{"read", "second"}, {"read2", "other"}});
  std::vector<StepInput> inputs = Inputs();
  inputs.push_back({InputKind::kIterator, "it2"});
  const StepDivision division = Divide({step}, inputs);
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(division.buffer_input, 0);
  EXPECT_EQ(division.ahead_inputs, (std::vector<int>{0, 2}));
  const Strings ahead = NodesOf(Find(division, division.ahead));
  EXPECT_EQ(ahead.size(), 8);
  EXPECT_EQ(std::count(ahead.begin(), ahead.end(),
                       "staging_end_reads = StagedRunEndReads("
                       "^next,^other,^second,)"),
            1);
  EXPECT_EQ(std::count(ahead.begin(), ahead.end(),
                       "second = IteratorGetNext(iterator,^next,)"),
            1);
  EXPECT_EQ(division.record.size(), 3);
  EXPECT_EQ(Find(division, division.rest).signature().input_arg_size(), 3);
}

// A step whose call of "callee" XLA compiles.
FunctionDef StepThatCallsXla() {
  return FDH::Create("step", {"iterator: resource", "weights: resource"},
                     {"out: float"}, {},
                     {GetNext(),
                      {{"call"},
                       "StatefulPartitionedCall",
                       {"next:components:0", "weights"},
                       {{"Tin", DataTypeVector{DT_STRING, DT_RESOURCE}},
                        {"Tout", DataTypeVector{DT_FLOAT}},
                        {"_XlaMustCompile", true},
                        {"f", FDH::FunctionRef("callee")}}}},
                     {{"out", "call:output:0"}}, {{"read", "next"}});
}

TEST(StepDivisionTest, XlaKeepsWhatItCanCompile) {
  const FunctionDef callee = FDH::Create(
      "callee", {"text: string", "weights: resource"}, {"out: float"}, {},
      {Hash("hash", "text"),
       {{"negative"}, "Neg", {"hash:output:0"}, {{"T", DT_INT64}}},
       Gather("gather", "negative:y:0")},
      {{"out", "gather:output:0"}});
  const StepDivision division = Divide({StepThatCallsXla(), callee}, Inputs());
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(division.nodes_ahead, (Strings{"next", "call/hash"}));
  bool is_compiled = false;
  for (const NodeDef& node : Find(division, division.rest).node_def()) {
    is_compiled |= node.attr().count("_XlaMustCompile") > 0;
  }
  EXPECT_TRUE(is_compiled);
  for (const NodeDef& node : Find(division, division.ahead).node_def()) {
    EXPECT_EQ(node.attr().count("_XlaMustCompile"), 0) << node.name();
  }
}

TEST(StepDivisionTest, NoRecordCarriesWhatXlaNeedsAtCompileTime) {
  // A shape leads to a string, and XLA needs it for a reshape.
  const FunctionDef callee = FDH::Create(
      "callee", {"text: string", "weights: resource"}, {"out: float"}, {},
      {Hash("hash", "text"),
       {{"shape"},
        "Shape",
        {"hash:output:0"},
        {{"T", DT_INT64}, {"out_type", DT_INT32}}},
       {{"string"}, "AsString", {"shape:output:0"}, {{"T", DT_INT32}}},
       Hash("hash2", "string:output:0"),
       {{"reshaped"},
        "Reshape",
        {"hash2:output:0", "shape:output:0"},
        {{"T", DT_INT64}, {"Tshape", DT_INT32}}},
       Gather("gather", "reshaped:output:0")},
      {{"out", "gather:output:0"}});
  const StepDivision division = Divide({StepThatCallsXla(), callee}, Inputs());
  EXPECT_EQ(division.why_not, "");
  std::vector<std::string> names;
  for (const CarriedTensor& tensor : division.record) {
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Strings{"call/hash2:0", "call/hash:0"}));
}

TEST(StepDivisionTest, WhatNeedsSuchAValueLeavesXlaToo) {
  // A length that is read from a string.
  const FunctionDef callee = FDH::Create(
      "callee", {"text: string", "weights: resource"}, {"out: float"}, {},
      {{{"number"}, "StringToNumber", {"text"}, {{"out_type", DT_INT32}}},
       {{"three"},
        "Const",
        {},
        {{"dtype", DT_INT64}, {"value", Tensor(int64_t{3})}}},
       {{"filled"},
        "Fill",
        {"number:output:0", "three:output:0"},
        {{"T", DT_INT64}, {"index_type", DT_INT32}}},
       Gather("gather", "filled:output:0")},
      {{"out", "gather:output:0"}});
  const StepDivision division = Divide({StepThatCallsXla(), callee}, Inputs());
  EXPECT_EQ(division.why_not, "");
  ASSERT_EQ(division.record.size(), 1);
  EXPECT_EQ(division.record[0].name, "call/filled:0");
}

TEST(StepDivisionTest, WhatDependsOnNoElementLeavesXlaToo) {
  const FunctionDef callee = FDH::Create(
      "callee", {"text: string", "weights: resource"}, {"out: float"}, {},
      {{{"three"},
        "Const",
        {},
        {{"dtype", DT_INT32}, {"value", Tensor(int32{3})}}},
       {{"string"}, "AsString", {"three:output:0"}, {{"T", DT_INT32}}},
       Hash("hash", "string:output:0"),
       Gather("gather", "hash:output:0")},
      {{"out", "gather:output:0"}});
  const StepDivision division = Divide({StepThatCallsXla(), callee}, Inputs());
  EXPECT_EQ(division.why_not, "");
  ASSERT_EQ(division.record.size(), 1);
  EXPECT_EQ(division.record[0].name, "call/hash:0");
}

// Reads the iterator, and then reads it again in a loop, in whose body the nodes
// have other names. There, ids are hashed to so many buckets.
std::vector<FunctionDef> StepThatReadsBesideItsLoop(int64_t buckets) {
  FDH::Node next = GetNext();
  next.ret = {"next_1"};
  const FDH::Node hash = {{"hash_1"},
                          "StringToHashBucketFast",
                          {"next_1:components:0"},
                          {{"num_buckets", buckets}}};
  const FunctionDef body =
      FDH::Create("body", {"weights: resource", "iterator: resource"},
                  {"out_weights: resource", "out: resource"}, {},
                  {next, hash, Gather("gather_1", "hash_1:output:0")},
                  {{"out_weights", "weights"}, {"out", "iterator"}},
                  {{"read", "next_1"}, {"gathered", "gather_1"}});
  const FunctionDef condition = FDH::Create(
      "condition", {"weights: resource", "iterator: resource"}, {"out: bool"},
      {},
      {{{"true"}, "Const", {}, {{"dtype", DT_BOOL}, {"value", Tensor(true)}}}},
      {{"out", "true:output:0"}});
  const FDH::Node loop = {{"loop"},
                          "While",
                          {"weights", "iterator"},
                          {{"T", DataTypeVector{DT_RESOURCE, DT_RESOURCE}},
                           {"cond", FDH::FunctionRef("condition")},
                           {"body", FDH::FunctionRef("body")}},
                          {"next"}};
  const FunctionDef step = FDH::Create(
      "step", {"iterator: resource", "weights: resource"}, {"out: float"}, {},
      {GetNext(), Hash("hash", "next:components:0"),
       Gather("gather", "hash:output:0"), loop},
      {{"out", "gather:output:0"}}, {{"read", "next"}, {"effect", "loop"}});
  return {step, body, condition};
}

TEST(StepDivisionTest, ALoopTakesTheRecordsThatTheStepTakesBesideIt) {
  const StepDivision division =
      Divide(StepThatReadsBesideItsLoop(10), Inputs());
  EXPECT_EQ(division.why_not, "");
  EXPECT_EQ(NodesOf(Find(division, division.rest)),
            (Strings{"gather = ResourceGather(weights,next:values:0,)",
                     "loop = While(weights,iterator,^next,)",
                     "next = StepBufferTake(iterator,)"}));
  for (const NodeDef& node : Find(division, division.rest).node_def()) {
    if (node.op() != "While") continue;
    EXPECT_EQ(NodesOf(Find(division, node.attr().at("body").func().name())),
              (Strings{"gather_1 = ResourceGather(weights,next_1:values:0,)",
                       "next_1 = StepBufferTake(iterator,)"}));
  }
  EXPECT_EQ(division.ahead_inputs, std::vector<int>{0});
}

TEST(StepDivisionTest, ALoopThatNeedsOtherRecordsIsNotStaged) {
  const StepDivision division =
      Divide(StepThatReadsBesideItsLoop(11), Inputs());
  EXPECT_EQ(division.why_not,
            "loop 'loop' reads other records than the step does beside it");
  EXPECT_EQ(division.functions.function_size(), 0);
}

TEST(StepDivisionTest, LoopsThatAreNestedTooDeepAreAnError) {
  const FunctionDef condition = FDH::Create(
      "condition", {"iterator: resource"}, {"out: bool"}, {},
      {{{"true"}, "Const", {}, {{"dtype", DT_BOOL}, {"value", Tensor(true)}}}},
      {{"out", "true:output:0"}});
  const FDH::Node loop = {{"loop"},
                          "While",
                          {"iterator"},
                          {{"T", DataTypeVector{DT_RESOURCE}},
                           {"cond", FDH::FunctionRef("condition")},
                           {"body", FDH::FunctionRef("body")}}};
  // Its loop's body is the function itself.
  const FunctionDef body =
      FDH::Create("body", {"iterator: resource"}, {"out: resource"}, {}, {loop},
                  {{"out", "iterator"}}, {{"effect", "loop"}});
  const FunctionDef step = FDH::Create("step", {"iterator: resource"}, {}, {},
                                       {loop}, {}, {{"effect", "loop"}});
  FunctionDefLibrary proto;
  *proto.add_function() = body;
  *proto.add_function() = step;
  *proto.add_function() = condition;
  const FunctionLibraryDefinition library(OpRegistry::Global(), proto);
  StepDivision division;
  const Status status = DivideStep(
      step, library, {{InputKind::kIterator, "it"}}, "p_", &division);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("nested more than 16 deep"),
            std::string::npos)
      << status;
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
