// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_LOGS_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_LOGS_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/smart_stage/graph_history.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"

namespace tensorflow {
namespace staging {

// What the graph passes tell the user about the stages of a session. A session
// logs each warning once; one without a history (GraphHistory::Of), for which
// `history` is null, logs it each time that its graph grows. `plan` is the plan
// of `graph`.

// Logs the stages that SmartStage found.
void LogStages(const StagePlan& plan, const Graph& graph,
               GraphHistory* history);

// Logs the stages of lookups.
void LogLookups(const StagePlan& plan, const StaleReads& stale,
                const AsyncEmbeddingSettings& settings, const Graph& graph,
                GraphHistory* history);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_LOGS_H_
