// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_RUNNERS_NODE_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_RUNNERS_NODE_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"
#include "tensorflow_staging/core/smart_stage/stage_notes.h"

namespace tensorflow {
namespace staging {

// Only the graph pass of a session plans its stages, and the session may be in
// another process. So the session's graph itself says which runners its stages
// need: in a constant, which a client fetches by its name, kRunnersNode.

// Finds the runners that the stages of `plan` need: the options of those that
// SmartStage creates and, with nothing else set, the Puts of the manual stages
// whose Puts need a check. The client knows the options of manual stages.
std::vector<PrefetchRunnerOptions> RunnersOfPlan(
    const StagePlan& plan, const SmartStageSettings& settings);

// Adds the constant that holds `runners` to `graph`, the graph of the session
// with this handle.
Status AddRunnersNode(const std::vector<PrefetchRunnerOptions>& runners,
                      const std::string& session_handle, Graph* graph);

// Finds the runners of a session: `manual_stages`, the options of the manual
// stages, which check their Puts where those need it, and the options of the
// stages that SmartStage created in the session. And what the program has to
// know about them, unless `notes` is null. The session must have its graph.
//
// Returns the session's error if it cannot run.
Status FindRunnersOfSession(
    Session* session, const std::vector<PrefetchRunnerOptions>& manual_stages,
    std::vector<PrefetchRunnerOptions>* runners,
    std::vector<StageNote>* notes = nullptr);

// Runs ops of stages that yield an int64 scalar, such as a discard_tensor, one
// after the other. Sets `*counts` to what they yield.
Status FetchCounts(Session* session, const std::vector<std::string>& tensors,
                   std::vector<int64_t>* counts);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_RUNNERS_NODE_H_
