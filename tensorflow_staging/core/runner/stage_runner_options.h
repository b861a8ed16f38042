// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_STAGE_RUNNER_OPTIONS_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_STAGE_RUNNER_OPTIONS_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// What runners a session with this configuration needs for `graph`: those of
// the stages that tf.staged made, given as `by_hand`, and those of the stages
// that SmartStage makes when the session takes the graph.
//
// The session may be far away. It comes to the same stages, as both follow from
// the graph and the configuration alone.
//
// `counts` is as for StagePlan: a session that gets more nodes once its stages
// run keeps the stages of the nodes that it had.
//
// Returns INVALID_ARGUMENT if the configuration is wrong.
Status FindRunnerOptions(const Graph& graph, const ConfigProto& config,
                         const std::vector<PrefetchRunnerOptions>& by_hand,
                         std::vector<PrefetchRunnerOptions>* runners,
                         const NodeFilter& counts = nullptr);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_STAGE_RUNNER_OPTIONS_H_
