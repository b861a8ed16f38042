// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/step_division.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/division/ahead_and_rest.h"
#include "tensorflow_staging/core/ahead/division/call_division.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/loop_division.h"
#include "tensorflow_staging/core/ahead/division/optional_division.h"
#include "tensorflow_staging/core/ahead/division/same_function.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"

namespace tensorflow {
namespace staging {
namespace {

// Loops may be nested so deep.
constexpr int kDeepestLoop = 16;

// What is divided, as the arguments of DivideStep.
struct Step {
  const FunctionDef& function;
  const FunctionLibraryDefinition& library;
  const std::vector<StepInput>& inputs;
  const std::string& prefix;
  int loops;
};

// A new function that `division` has.
const FunctionDef& Part(const StepDivision& division, const std::string& name) {
  return *absl::c_find_if(division.functions.function(),
                          [&name](const FunctionDef& function) {
                            return function.signature().name() == name;
                          });
}

Status ReturnsIterator(const Step& step, const CallSite& root, bool* does) {
  for (const Node* output : root.body->ret_nodes) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(output->input_edge(0, &edge));
    const Node* const returned = BehindIdentities(edge);
    if (returned->IsArg() &&
        step.inputs[IndexOf(*returned)].kind == InputKind::kIterator) {
      *does = true;
    }
  }
  return OkStatus();
}

// Sets the division's record.
void DescribeRecord(const Step& step, const CallSite& root,
                    const SiteSides& sides, const CallDivision& calls,
                    const Graph& flat, StepDivision* division) {
  std::vector<CarriedTensor>& record = division->record;
  StagedRegion region;
  // Where in the record the tensors of the region's boundary are.
  std::vector<size_t> places;
  for (const NodeOutput& tensor : sides.boundary) {
    record.push_back(
        {tensor.node->name(), tensor.node->output_type(tensor.index), {}});
    const auto [node, index] = calls.OriginOf(root, tensor);
    if (node == nullptr) continue;  // How far a loop moves a state.
    places.push_back(record.size() - 1);
    region.boundary.push_back({node, index});
    record.back().name = region.boundary.back().name();
  }
  const std::vector<PartialTensorShape> shapes = BoundaryShapes(flat, region);
  for (size_t i = 0; i < places.size(); ++i) {
    record[places[i]].shape = shapes[i];
  }
  // Their states come last.
  for (const RandomState& state : division->random_states) {
    record.push_back({absl::StrCat("state of ", step.inputs[state.input].name),
                      state.dtype, PartialTensorShape()});
  }
}

// Divides the step where it reads its iterators itself; `loop`, which may be
// null, reads records of its own.
Status DivideFlat(const Step& step, const Node* loop, CallSite* root,
                  StepDivision* division) {
  StepPartition found;
  TF_RETURN_IF_ERROR(
      PartitionStep(*root, step.inputs, loop, step.library, &found));
  division->why_not = found.why_not;
  division->random_states = found.random_states;
  division->nodes_ahead = found.nodes_ahead;
  division->outside = found.outside;
  if (!division->why_not.empty()) return OkStatus();
  CallDivision calls(step.library, step.prefix, found, division);
  SiteSides sides;
  TF_RETURN_IF_ERROR(calls.Divide(root, &sides));
  if (!division->why_not.empty()) return OkStatus();
  DescribeRecord(step, *root, sides, calls, found.flat->graph(), division);
  TF_RETURN_IF_ERROR(DefineAhead(step.function, *root, sides, step.inputs,
                                 step.library, step.prefix, division));
  return DefineRest(step.function, *root, sides, step.library, step.prefix,
                    division);
}

// After DivideFlat: divides the loop that reads the iterators, too. Sets why_not
// unless what runs ahead is the same there.
Status DivideLoopToo(const Step& step, const Node& loop,
                     StepDivision* division) {
  StepDivision looped;
  TF_RETURN_IF_ERROR(DivideLoop(Part(*division, division->rest), loop,
                                step.inputs, step.library, step.prefix,
                                step.loops, &looped));
  FunctionLibraryDefinition all(step.library);
  TF_RETURN_IF_ERROR(all.AddLibrary(division->functions));
  TF_RETURN_IF_ERROR(all.AddLibrary(looped.functions));
  // The buffer's handle is the last input of both.
  std::vector<int> inputs = division->ahead_inputs;
  std::vector<int> inputs_in_loop = looped.ahead_inputs;
  for (std::vector<int>* list : {&inputs, &inputs_in_loop}) {
    list->push_back(step.inputs.size());
  }
  if (looped.why_not.empty() &&
      (looped.buffer_input != division->buffer_input ||
       looped.random_states != division->random_states ||
       !IsSameFunction(Part(*division, division->ahead), inputs,
                       Part(looped, looped.ahead), inputs_in_loop, all))) {
    looped.why_not = absl::StrCat("loop '", loop.name(),
                                  "' reads other records than the step does "
                                  "beside it");
  }
  if (!looped.why_not.empty()) {
    division->why_not = looped.why_not;
    division->functions.Clear();
    return OkStatus();
  }
  division->rest = looped.rest;
  looped.origins[looped.rest] = step.function.signature().name();
  division->origins.merge(looped.origins);
  division->functions.MergeFrom(looped.functions);
  return OkStatus();
}

Status Divide(const Step& step, StepDivision* division) {
  const auto iterator =
      absl::c_find_if(step.inputs, [](const StepInput& input) {
        return input.kind == InputKind::kIterator;
      });
  if (iterator == step.inputs.end()) {
    division->why_not = "no argument is a tf.data iterator";
    return OkStatus();
  }
  division->buffer_input = iterator - step.inputs.begin();
  const std::string& name = step.function.signature().name();
  const auto compiled = step.function.attr().find("_XlaMustCompile");
  if (compiled != step.function.attr().end() && compiled->second.b()) {
    division->why_not = "XLA compiles the whole step";
    return OkStatus();
  }
  std::unique_ptr<CallSite> root;
  TF_RETURN_IF_ERROR(FindCallSites(step.function, step.library, &root));
  if (step.inputs.size() != root->body->arg_nodes.size()) {
    return errors::InvalidArgument(
        "'", name, "' has ", root->body->arg_nodes.size(), " inputs, and ",
        step.inputs.size(), " are described.");
  }
  // The body of a loop returns its iterator for the next iteration.
  bool returns_iterator = false;
  TF_RETURN_IF_ERROR(ReturnsIterator(step, *root, &returns_iterator));
  if (step.loops == 0 && returns_iterator) {
    division->why_not = "it returns its iterator";
    return OkStatus();
  }
  OptionalRead optional;
  if (FindOptionalRead(*root, step.inputs, &optional)) {
    return DivideOptional(*root, optional, step.inputs, step.library,
                          step.prefix, step.loops, division);
  }
  bool loop_alone = true;
  const Node* const loop = LoopThatReads(*root, step.inputs, &loop_alone);
  if (loop == nullptr) return DivideFlat(step, nullptr, root.get(), division);
  if (step.loops == kDeepestLoop) {
    return errors::InvalidArgument("'", name,
                                   "' reads its iterators in loops that are "
                                   "nested more than ",
                                   kDeepestLoop, " deep.");
  }
  if (loop_alone) {
    return DivideLoop(step.function, *loop, step.inputs, step.library,
                      step.prefix, step.loops, division);
  }
  TF_RETURN_IF_ERROR(DivideFlat(step, loop, root.get(), division));
  if (!division->why_not.empty()) return OkStatus();
  return DivideLoopToo(step, *loop, division);
}

}  // namespace

std::string StepDivision::NewName(const std::string& prefix,
                                  const std::string& kind,
                                  const FunctionDef& origin) {
  const std::string name =
      absl::StrCat(prefix, kind, "_", static_cast<int>(origins.size()));
  origins[name] = origin.signature().name();
  return name;
}

Status DivideStep(const FunctionDef& step,
                  const FunctionLibraryDefinition& library,
                  const std::vector<StepInput>& inputs,
                  const std::string& prefix, StepDivision* division,
                  int loops) {
  return Divide({step, library, inputs, prefix, loops}, division);
}

}  // namespace staging
}  // namespace tensorflow
