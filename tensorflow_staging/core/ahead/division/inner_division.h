// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_INNER_DIVISION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_INNER_DIVISION_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// Divides `function`, which a step runs in a loop or a branch, as DivideStep does.
// `outer` says for each of its inputs which of the step's `inputs` that always is;
// -1 if none. The division names the inputs of the step.
Status DivideInner(const FunctionDef& function, const std::vector<int>& outer,
                   const std::vector<StepInput>& inputs,
                   const FunctionLibraryDefinition& library,
                   const std::string& prefix, int loops,
                   StepDivision* division);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_INNER_DIVISION_H_
