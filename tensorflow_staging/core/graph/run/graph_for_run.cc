// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/graph_for_run.h"

#include <utility>

#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow_staging/core/graph/run/begins_without_put.h"
#include "tensorflow_staging/core/graph/run/fetch_check.h"
#include "tensorflow_staging/core/graph/run/run_request.h"
#include "tensorflow_staging/core/graph/run/stages_to_unstage.h"
#include "tensorflow_staging/core/graph/run/unstage.h"

namespace tensorflow {
namespace staging {

Status FindGraphForRun(const Graph& graph, const CallableOptions& options,
                       std::unique_ptr<Graph>* run_graph) {
  run_graph->reset();
  const RunRequest run(options);
  StagesToUnstage stages;
  TF_RETURN_IF_ERROR(FindStagesToUnstage(graph, run, &stages));
  if (stages.empty()) {
    TF_RETURN_IF_ERROR(CheckFetches(graph, run));
    if (BeginsWithoutPut(graph, run).empty()) return OkStatus();
  }
  auto copy = std::make_unique<Graph>(graph.flib_def());
  CopyGraph(graph, copy.get());
  if (!stages.empty()) {
    TF_RETURN_IF_ERROR(Unstage(stages, copy.get()));
    TF_RETURN_IF_ERROR(CheckRecordsNotNeeded(*copy, run, stages));
    // Before the sources are replaced: a replaced source carries nothing, but
    // its fed outputs can be fetched.
    TF_RETURN_IF_ERROR(CheckFetches(*copy, run));
    TF_RETURN_IF_ERROR(ReplaceSources(stages, copy.get()));
  }
  for (Node* begin : BeginsWithoutPut(*copy, run)) copy->RemoveNode(begin);
  FixupSourceAndSinkEdges(copy.get());
  *run_graph = std::move(copy);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
