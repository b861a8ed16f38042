// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_DIVISION_H_

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"
#include "tensorflow_staging/core/ahead/division/step_partition.h"

namespace tensorflow {
namespace staging {

// A tensor that records carry.
struct CarriedTensor {
  std::string name;
  DataType dtype;
  PartialTensorShape shape;
};

// A step as two functions.
struct StepDivision {
  // Why nothing runs ahead; empty if something does. Then the rest is set.
  std::string why_not;

  // `ahead` is a function of the step's inputs `ahead_inputs` and of a buffer's
  // handle. It puts one record into the buffer, and returns true.
  std::string ahead;
  std::vector<int> ahead_inputs;
  // `rest` has the inputs and the outputs of the step, except that the buffer's
  // handle is in the place of an iterator, input `buffer_input`. It takes one
  // record where the step reads its iterators.
  std::string rest;
  int buffer_input = -1;
  // Which of the inputs are states of random generators, from which `ahead`
  // must draw from a copy: `rest` draws from the state as the step does, and
  // uses what the record carries. The last tensors of a record are what these
  // states were after it.
  std::vector<RandomState> random_states;

  // All new functions, `ahead` and `rest` included, and of which functions each
  // is a part.
  FunctionDefLibrary functions;
  std::map<std::string, std::string> origins;

  // What the records carry, and for people: the nodes ahead, and the first
  // nodes that use them and stay in the rest, with the reason.
  std::vector<CarriedTensor> record;
  std::vector<std::string> nodes_ahead;
  std::vector<NodeInRest> outside;

  // Returns the name of the next new function, a part of `origin`.
  std::string NewName(const std::string& prefix, const std::string& kind,
                      const FunctionDef& origin);
};

// Divides `step`, a function whose iterators are among `inputs`, by the rules of
// sessions (graph/partition/stage_partition.h) and those of FlatStep. Functions
// that the step calls are divided in place: a call becomes two calls, one ahead
// and one in the rest. So is the body of a loop that reads the iterators
// (loop_division.h). Of calls that XLA compiles, only what XLA cannot compile
// runs ahead (xla_division.h). Changes neither `step` nor `library`.
//
// `prefix` makes the names of the new functions unique in the process. `loops`
// is how many loops are around the step.
//
// Returns an error if the functions are no valid graphs, if loops are nested
// deeper than 16, or if `inputs` does not fit the step.
Status DivideStep(const FunctionDef& step,
                  const FunctionLibraryDefinition& library,
                  const std::vector<StepInput>& inputs,
                  const std::string& prefix, StepDivision* division,
                  int loops = 0);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_STEP_DIVISION_H_
