// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_AHEAD_AND_REST_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_AHEAD_AND_REST_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/ahead/division/call_sites.h"
#include "tensorflow_staging/core/ahead/division/site_sides.h"
#include "tensorflow_staging/core/ahead/division/step_division.h"
#include "tensorflow_staging/core/ahead/division/step_input.h"

namespace tensorflow {
namespace staging {

// Define the functions `ahead` and `rest` of `division`, whose record and
// random_states are set. `root` and `sides` are of `step`, with its calls
// divided; `prefix` is as for DivideStep.

// Also sets ahead_inputs. `inputs` are those of the step.
Status DefineAhead(const FunctionDef& step, const CallSite& root,
                   const SiteSides& sides, const std::vector<StepInput>& inputs,
                   const FunctionLibraryDefinition& library,
                   const std::string& prefix, StepDivision* division);

Status DefineRest(const FunctionDef& step, const CallSite& root,
                  const SiteSides& sides,
                  const FunctionLibraryDefinition& library,
                  const std::string& prefix, StepDivision* division);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_AHEAD_AND_REST_H_
