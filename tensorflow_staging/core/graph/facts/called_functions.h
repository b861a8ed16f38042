// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CALLED_FUNCTIONS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CALLED_FUNCTIONS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow {
namespace staging {

// Returns the functions among the attributes of `node`.
std::vector<NameAttrList> FunctionAttrs(const NodeDef& node);

// Returns the names of the functions that `node` calls: its op, if that is a
// function of `functions`, and the functions among its attributes.
std::vector<std::string> CalledFunctions(
    const NodeDef& node, const FunctionLibraryDefinition& functions);

// Returns whether `accepts` accepts a node of the functions `names`, or of those
// that these call, directly or indirectly. Visits no function twice.
bool AnyNodeOfFunctions(std::vector<std::string> names,
                        const FunctionLibraryDefinition& functions,
                        absl::FunctionRef<bool(const NodeDef&)> accepts);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CALLED_FUNCTIONS_H_
