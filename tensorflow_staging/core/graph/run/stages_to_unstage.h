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

// Stages that a run computes in the step, by name, each with a fed tensor that
// makes it necessary.
using StagesToUnstage = std::map<std::string, TensorId>;

// Finds the stages whose regions use a tensor that the run feeds: their records
// were computed without the fed value. The tensor may be an output of a
// stand-in, or one that both sides share, such as a constant.
//
// A fed output of a stand-in that only the step uses makes nothing necessary:
// the fed value takes the place of the carried one.
//
// Returns INVALID_ARGUMENT if a mark of a node that is fed is malformed.
Status FindStagesToUnstage(const Graph& graph, const RunRequest& run,
                           StagesToUnstage* stages);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAGES_TO_UNSTAGE_H_
