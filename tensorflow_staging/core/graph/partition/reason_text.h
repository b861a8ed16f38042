// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_

#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {

// Why a node is on the training step's side, and through which node: the
// variable that it depends on, for example. The node itself is its own cause if
// the reason lies in it. Null if there is no such node.
struct StepCause {
  StepReason reason = StepReason::kNone;
  const Node* node = nullptr;
};

// What `cause` says of `node`, as the end of a sentence that begins with the
// node: "depends on variable 'emb'".
std::string ReasonText(const Node& node, const StepCause& cause);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_REASON_TEXT_H_
