// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_OPTIONAL_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_OPTIONAL_DIVISION_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// A read that asks whether there is an element, as `for x in iterator` does in a
// tf.function, and the conditional whose branch uses the element:
//
//   iterator ─▶ IteratorGetNextAsOptional ─┬─▶ OptionalHasValue ─▶ If
//                                          └─▶ then_branch: OptionalGetValue ─▶ ...
struct OptionalRead {
  // The index of the iterator.
  int iterator = -1;
  const Node* read = nullptr;
  // What asks whether there is an element.
  std::vector<const Node*> asks;
  const Node* conditional = nullptr;
  // Which input of the branches the Optional is.
  int branch_input = -1;
};

// Returns whether `step` reads its only iterator so, and in no other way.
bool FindOptionalRead(const CallSite& step,
                      const std::vector<StepInput>& inputs,
                      OptionalRead* found);

// Divides a step that reads so, with `loops` loops around it: the branch is divided
// in place, as DivideStep does, and the step takes a record, if there is one, where
// it reads. What draws stays in the step unless each element takes the branch.
Status DivideOptional(const CallSite& step, const OptionalRead& read,
                      const std::vector<StepInput>& inputs,
                      const FunctionLibraryDefinition& library,
                      const std::string& prefix, int loops,
                      StepDivision* division);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_OPTIONAL_DIVISION_H_
