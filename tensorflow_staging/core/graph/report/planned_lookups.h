// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REPORT_PLANNED_LOOKUPS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REPORT_PLANNED_LOOKUPS_H_

#include <memory>

#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/report/stage_report.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"

namespace tensorflow {
namespace staging {

// The stages of lookups, which are planned for the graph that has the other
// stages already.
struct PlannedLookups {
  explicit PlannedLookups(const Graph& original) : graph(original.flib_def()) {
    CopyGraph(original, &graph);
  }

  Status Plan(const ReportOptions& options) {
    const StagePlan stages(graph, options.smart_stage, options.name,
                           NodeFilter(), options.content);
    TF_RETURN_IF_ERROR(RewriteStages(stages, RewriteOptions(), &graph));
    stale = std::make_unique<StaleReads>(graph);
    plan = std::make_unique<StagePlan>(graph, *stale, kAsyncEmbeddingStageName);
    return OkStatus();
  }

  Graph graph;
  std::unique_ptr<StaleReads> stale;
  std::unique_ptr<StagePlan> plan;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REPORT_PLANNED_LOOKUPS_H_
