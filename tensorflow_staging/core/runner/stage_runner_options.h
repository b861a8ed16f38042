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

// Finds the options of the runners that a session with this configuration needs
// for `graph`: the options of the manual stages, given as `manual_stages`, and
// those of the stages that SmartStage creates when the session receives the
// graph.
//
// The session may be in another process. It finds the same stages, because the
// stages depend only on the graph and the configuration.
//
// `counts` is as for StagePlan: a session whose graph is extended while its
// stages run keeps the stages of the nodes that it had.
//
// Returns INVALID_ARGUMENT if the SmartStage settings in `config` are invalid.
Status FindRunnerOptions(
    const Graph& graph, const ConfigProto& config,
    const std::vector<PrefetchRunnerOptions>& manual_stages,
    std::vector<PrefetchRunnerOptions>* runners,
    const NodeFilter& counts = nullptr);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_STAGE_RUNNER_OPTIONS_H_
