// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DIVISION_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// Returns the loop of `step` that uses its iterators, or null if there is none,
// or more than one. Sets `*alone` to whether nothing else uses them.
const Node* LoopThatReads(const CallSite& step,
                          const std::vector<StepInput>& inputs, bool* alone);

// Divides a step that reads its iterators in `loop`, with `loops` loops around
// it: the loop's body is divided in place, as DivideStep does. What it prepares
// may use only what is the same in all iterations.
Status DivideLoop(const FunctionDef& step, const Node& loop,
                  const std::vector<StepInput>& inputs,
                  const FunctionLibraryDefinition& library,
                  const std::string& prefix, int loops, StepDivision* division);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_LOOP_DIVISION_H_
