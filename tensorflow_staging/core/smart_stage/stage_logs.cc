// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/stage_logs.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

// The number of tensors that the step needs for each record.
int NeededTensors(const StagedRegion& region) {
  return absl::c_count_if(region.boundary, [](const StagedTensor& tensor) {
    return !tensor.only_if_asked;
  });
}

// The number of nodes of the program that run ahead, as tf.staging.explain
// counts them: without what stands for the records of an earlier stage.
int NodesAhead(const StagedRegion& region) {
  return absl::c_count_if(region.nodes, [](const Node* node) {
    return !IsBufferTake(*node) && !IsStandIn(*node);
  });
}

void WarnOnce(const std::string& text, GraphHistory* history) {
  if (history == nullptr || history->IsNew(text)) LOG(WARNING) << text;
}

// Whether an op updates a variable by a step of training, or counts steps.
bool IsUpdateOp(absl::string_view op) {
  return absl::StrContains(op, "Apply") || absl::StrContains(op, "AssignAdd") ||
         absl::StrContains(op, "AssignSub") || absl::StrContains(op, "Scatter");
}

// Whether whoever runs `graph` expects that something runs ahead. A graph that
// only serves predictions is fed: it has no source, and it does not train.
bool ExpectsStages(const Graph& graph) {
  return absl::c_any_of(graph.op_nodes(), [](const Node* node) {
    return IsSourceOp(*node) || IsUpdateOp(node->type_string());
  });
}

}  // namespace

void LogStages(const StagePlan& plan, const Graph& graph,
               GraphHistory* history) {
  bool any = false;
  for (const PlannedStage& stage : plan.stages()) {
    if (stage.region == nullptr) continue;
    any = true;
    LOG(INFO) << absl::StrCat(
        "SmartStage: stage '", stage.name, "' runs ", NodesAhead(*stage.region),
        " nodes ahead of the step, which takes ", NeededTensors(*stage.region),
        " tensors from each record.");
  }
  if (!any && ExpectsStages(graph)) {
    WarnOnce(
        "SmartStage found nothing to run ahead of the step; "
        "print(tf.staging.explain(config=config)) says why.",
        history);
  }
}

void LogLookups(const StagePlan& plan, const StaleReads& stale,
                const AsyncEmbeddingSettings& settings, const Graph& graph,
                GraphHistory* history) {
  for (const Node* variable : stale.without_lookups()) {
    WarnOnce(
        absl::StrCat("Async embedding: the graph looks up nothing in variable "
                     "'",
                     variable->name(),
                     "', which tf.staging.allow_stale has marked."),
        history);
  }
  for (const PlannedStage& stage : plan.stages()) {
    LOG(INFO) << absl::StrCat(
        "Async embedding: stage '", stage.name, "' runs ",
        NodesAhead(*stage.region), " nodes ahead of the step, which takes ",
        NeededTensors(*stage.region),
        " tensors from each record. Its lookups may miss the updates of ",
        settings.capacity + settings.num_threads, " steps.");
  }
  if (plan.stages().empty() && ExpectsStages(graph)) {
    WarnOnce(
        absl::StrCat(
            "Async embedding found no lookup that can run ahead of the step, "
            "in ",
            stale.variables().size(),
            " variables; print(tf.staging.explain(config=config)) says why."),
        history);
  }
}

}  // namespace staging
}  // namespace tensorflow
