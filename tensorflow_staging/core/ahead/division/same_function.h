// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SAME_FUNCTION_H_
#define TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SAME_FUNCTION_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"

namespace tensorflow {
namespace staging {

// Returns whether two functions compute the same, node by node: they differ in
// the names of nodes and of the functions that they call, and in attributes that
// begin with '_', which do not decide what a node computes. Parameters are the
// same if `a_inputs` and `b_inputs` have the same number for them.
bool IsSameFunction(const FunctionDef& a, const std::vector<int>& a_inputs,
                    const FunctionDef& b, const std::vector<int>& b_inputs,
                    const FunctionLibraryDefinition& library);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_AHEAD_DIVISION_SAME_FUNCTION_H_
