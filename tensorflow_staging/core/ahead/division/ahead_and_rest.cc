// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/ahead_and_rest.h"

#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/ahead/buffer/step_buffer.h"
#include "tensorflow_staging/core/ahead/division/function_part.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Adds what reads the states of the random generators after the draws.
Status AddStateReads(const CallSite& root,
                     const std::vector<RandomState>& states, FunctionPart* part,
                     std::vector<Node*>* reads) {
  for (const RandomState& state : states) {
    Node* const copy = part->Find(root.body->arg_nodes[state.input]);
    // After all draws.
    std::vector<Node*> draws;
    for (const Edge* edge : copy->out_edges()) draws.push_back(edge->dst());
    Node* read = nullptr;
    TF_RETURN_IF_ERROR(
        NodeBuilder(part->NewName("staging_state", {}), "ReadVariableOp")
            .Input(copy)
            .Attr("dtype", state.dtype)
            .ControlInputs(draws)
            .Finalize(part->graph(), &read));
    reads->push_back(read);
  }
  return OkStatus();
}

// Adds what ends the turn of a run to read and to draw: after everything that
// uses an iterator, and after `draws`.
Status AddEndReads(const CallSite& root, const NodeSet& nodes,
                   const std::vector<StepInput>& inputs,
                   std::vector<Node*> draws, FunctionPart* part,
                   std::vector<Node*>* control) {
  std::vector<Node*> reads = std::move(draws);
  for (const Node* arg : ArgsOf(root, nodes)) {
    if (inputs[IndexOf(*arg)].kind != InputKind::kIterator) continue;
    std::vector<Node*> handles = {part->Find(arg)};
    while (!handles.empty()) {
      const Node* const handle_of_iterator = handles.back();
      handles.pop_back();
      for (Node* user : handle_of_iterator->out_nodes()) {
        if (!user->IsOp()) continue;
        (user->IsIdentity() ? handles : reads).push_back(user);
      }
    }
  }
  Node* end = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(part->NewName("staging_end_reads", nodes), kEndReadsOp)
          .ControlInputs(reads)
          .Finalize(part->graph(), &end));
  control->push_back(end);
  return OkStatus();
}

// The Take has the name of the read that it replaces, so that its errors name
// the same line of the program.
std::string NameOfTake(const NodeSet& ahead) {
  for (const Node* node : ahead) {
    if (node->type_string() == "IteratorGetNext") return node->name();
  }
  return "staging_take";
}

}  // namespace

Status DefineAhead(const FunctionDef& step, const CallSite& root,
                   const SiteSides& sides, const std::vector<StepInput>& inputs,
                   const FunctionLibraryDefinition& library,
                   const std::string& prefix, StepDivision* division) {
  FunctionPart part(library);
  const NodeSet nodes = sides.AheadAndShared();
  for (const Node* arg : ArgsOf(root, nodes)) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
    division->ahead_inputs.push_back(IndexOf(*arg));
  }
  Node* handle = nullptr;
  TF_RETURN_IF_ERROR(part.AddInput("staging_buffer", DT_RESOURCE, &handle));
  TF_RETURN_IF_ERROR(part.AddNodes(nodes));
  std::vector<NodeBuilder::NodeOut> values;
  for (const NodeOutput& tensor : sides.boundary) {
    const auto [node, output] = part.Find(tensor);
    values.emplace_back(node, output);
  }
  std::vector<Node*> states;
  TF_RETURN_IF_ERROR(
      AddStateReads(root, division->random_states, &part, &states));
  for (Node* state : states) values.emplace_back(state, 0);
  Node* put = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder(part.NewName("staging_put", nodes), kStepPutOp)
                         .Input(handle)
                         .Input(values)
                         .Finalize(part.graph(), &put));
  // A check that fails must come before the record does.
  std::vector<Node*> control = ControlOutputsIn(root, sides.ahead, part);
  for (Node* node : control) part.graph()->AddControlEdge(node, put);
  control.push_back(put);
  TF_RETURN_IF_ERROR(AddEndReads(root, nodes, inputs, states, &part, &control));
  // TensorFlow's optimizers do less for a function that returns nothing, and the
  // step computes what they have made of it without a stage.
  Node* done = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder(part.NewName("staging_done", nodes), "Const")
                         .Attr("dtype", DT_BOOL)
                         .Attr("value", Tensor(true))
                         .Finalize(part.graph(), &done));
  TF_RETURN_IF_ERROR(part.AddOutput(done, 0));
  division->ahead = division->NewName(prefix, "ahead", step);
  return part.Define(division->ahead, step, control,
                     division->functions.add_function());
}

Status DefineRest(const FunctionDef& step, const CallSite& root,
                  const SiteSides& sides,
                  const FunctionLibraryDefinition& library,
                  const std::string& prefix, StepDivision* division) {
  FunctionPart part(library);
  for (Node* arg : root.body->arg_nodes) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
  }
  DataTypeVector dtypes;
  std::vector<PartialTensorShape> shapes;
  for (const CarriedTensor& tensor : division->record) {
    dtypes.push_back(tensor.dtype);
    shapes.push_back(tensor.shape);
  }
  Node* take = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(part.NewName(NameOfTake(sides.ahead), sides.rest),
                  kStepTakeOp)
          .Input(part.Find(root.body->arg_nodes[division->buffer_input]))
          .Attr(kDtypesAttr, dtypes)
          .Attr(kShapesAttr, shapes)
          .Finalize(part.graph(), &take));
  for (size_t i = 0; i < sides.boundary.size(); ++i) {
    part.Replace(sides.boundary[i], take, i);
  }
  // A draw waits for those before it, but for no record: a step that fails without
  // an element draws.
  NodeSet awaited = sides.ahead;
  for (const Node* call : sides.drawing_calls) awaited.erase(call);
  TF_RETURN_IF_ERROR(part.AddNodes(sides.rest, awaited, take));
  std::vector<NodeOutput> outputs;
  TF_RETURN_IF_ERROR(OutputsOf(root, &outputs));
  for (const NodeOutput& output : outputs) {
    TF_RETURN_IF_ERROR(part.AddOutput(output));
  }
  std::vector<Node*> control = ControlOutputsIn(root, sides.rest, part);
  control.push_back(take);
  division->rest = division->NewName(prefix, "rest", step);
  return part.Define(division->rest, step, control,
                     division->functions.add_function());
}

}  // namespace staging
}  // namespace tensorflow
