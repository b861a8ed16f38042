// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_HANDOVER_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_HANDOVER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Lets the step use the records of stages on other streams of its GPU where
// they are, in a graph that has been rewritten by RewriteStages and then
// placed. `same_gpu` says whether two devices are streams of one GPU.
//
// If all Puts of a stage are on one stream, and the step uses most of a Take's
// outputs on another stream of that GPU, the Take moves to the step's stream.
// The Puts then wait until their records have been computed (kHandsOverAttr),
// and the Takes borrow the memory (kBorrowsFromAttr). Otherwise, and if a
// record contains what cannot be lent, TensorFlow copies each tensor from the
// Take's stream to the step's.
Status HandOverRecords(
    absl::FunctionRef<bool(const std::string&, const std::string&)> same_gpu,
    Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLACE_STAGE_HANDOVER_H_
