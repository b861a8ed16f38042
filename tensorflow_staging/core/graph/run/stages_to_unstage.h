// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAGES_TO_UNSTAGE_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAGES_TO_UNSTAGE_H_

#include <map>
#include <string>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/run/run_request.h"

namespace tensorflow {
namespace staging {

// The stages that one run computes in the step, by name. The value is a fed
// tensor for which the stage must be unstaged.
using StagesToUnstage = std::map<std::string, TensorId>;

// Finds the stages whose regions use a tensor that the run feeds: their records
// were computed without the fed value. The tensor may be an output of a
// stand-in, or an output of a shared node, such as a constant.
//
// If only the step uses a fed output of a stand-in, the stage stays: the fed
// value replaces the carried one.
//
// Returns INVALID_ARGUMENT if the mark of a fed stand-in, or of a clone, is
// malformed.
Status FindStagesToUnstage(const Graph& graph, const RunRequest& run,
                           StagesToUnstage* stages);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAGES_TO_UNSTAGE_H_
