// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_

#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/located_reason.h"

namespace tensorflow {
namespace staging {

// Returns the reason why `node` is in the step as the predicate of a sentence
// whose subject is the node: "depends on variable 'emb' (VariableV2)".
std::string ReasonText(const Node& node, const LocatedReason& reason);

// Returns what a user may do so that `reason` no longer keeps a node, the one
// that the reason is about, in the step: a sentence in the imperative. Returns
// an empty string if the reason is about no particular node.
const char* AdviceText(StepReason reason);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_
