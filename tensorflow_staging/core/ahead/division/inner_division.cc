// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/inner_division.h"

#include "absl/algorithm/container.h"

namespace tensorflow {
namespace staging {

Status DivideInner(const FunctionDef& function, const std::vector<int>& outer,
                   const std::vector<StepInput>& inputs,
                   const FunctionLibraryDefinition& library,
                   const std::string& prefix, int loops,
                   StepDivision* division) {
  std::vector<StepInput> inner_inputs(outer.size());
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] >= 0) inner_inputs[i] = inputs[outer[i]];
  }
  TF_RETURN_IF_ERROR(
      DivideStep(function, library, inner_inputs, prefix, division, loops));
  if (!division->why_not.empty()) return OkStatus();
  for (int& index : division->ahead_inputs) index = outer[index];
  for (RandomState& state : division->random_states) {
    state.input = outer[state.input];
  }
  division->buffer_input = outer[division->buffer_input];
  if (absl::c_linear_search(division->ahead_inputs, -1)) {
    division->why_not = "what runs ahead needs what the step computes";
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
