// SPDX-License-Identifier: Apache-2.0
//
// The graph passes that stage a session's graph. They only read options and
// call core/graph.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_pass.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"
#include "tensorflow_staging/core/graph/place/stage_delivery.h"
#include "tensorflow_staging/core/graph/place/stage_handover.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/late_iterator_readers.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"
#include "tensorflow_staging/core/graph/rewrite/stage_rewrite.h"
#include "tensorflow_staging/core/graph/run/end_of_reads.h"
#include "tensorflow_staging/core/graph/run/iterator_readers_of_run.h"
#include "tensorflow_staging/core/records/kernel_stream.h"
#include "tensorflow_staging/core/smart_stage/asking_session.h"
#include "tensorflow_staging/core/smart_stage/graph_history.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/smart_stage/smart_stage_settings.h"
#include "tensorflow_staging/core/smart_stage/stage_logs.h"
#include "tensorflow_staging/core/smart_stage/stage_notes.h"
#include "tensorflow_staging/core/smart_stage/unstaged_runs.h"

namespace tensorflow {
namespace staging {
namespace {

bool HasStage(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    if (IsBufferPut(*node) || IsBufferTake(*node)) return true;
  }
  return false;
}

// Returns the filter for `graph` after its rewrite: what the rewrite adds
// counts, too.
NodeFilter AfterRewrite(const NodeFilter& counts, const Graph& graph) {
  if (!counts.graph_grows()) return counts;
  auto names = std::make_shared<absl::flat_hash_set<std::string>>();
  for (const Node* node : graph.op_nodes()) names->insert(node->name());
  return NodeFilter([names, counts](const Node& node) {
    return !names->contains(node.name()) || counts(node);
  });
}

// Adds the stages of embedding lookups to `graph`, which has its other stages
// already, and their runners to `runners`.
Status StageLookups(const SmartStageSettings& settings,
                    const NodeFilter& counts, bool logs, RewriteOptions rewrite,
                    GraphHistory* history,
                    std::vector<PrefetchRunnerOptions>* runners, Graph* graph) {
  const SmartStageSettings lookups = SettingsOfLookups(settings);
  const StaleReads stale(*graph, counts);
  const StagePlan plan(*graph, stale, lookups.name, counts);
  for (PrefetchRunnerOptions& runner : RunnersOfPlan(plan, lookups)) {
    runners->push_back(std::move(runner));
  }
  if (logs) {
    LogLookups(plan, stale, settings.async_embedding, *graph, history);
  }
  rewrite.buffer = lookups.buffer;
  rewrite.with_variables = true;
  rewrite.beside_take = true;
  return RewriteStages(plan, rewrite, graph);
}

// What the history of a session says of its graph.
struct KnownOfGraph {
  // Null if the session keeps none.
  core::RefCountPtr<GraphHistory> history;
  NodeFilter counts;
  bool started_without_stages = false;
};

KnownOfGraph Recall(const GraphOptimizationPassOptions& options,
                    const Graph& graph) {
  KnownOfGraph known;
  if (options.device_set == nullptr) return known;
  const DeviceSet& devices = *options.device_set;
  known.history = GraphHistory::Of(options.session_handle, devices);
  if (known.history == nullptr) return known;
  known.counts = known.history->FilterIfRunning(devices);
  if (!known.counts.graph_grows()) known.history->RememberNodes(graph);
  known.started_without_stages =
      known.history->HasStartedWithoutStages(devices);
  return known;
}

bool HasGpu(const DeviceSet* devices) {
  return devices != nullptr &&
         absl::c_any_of(devices->devices(), [](const Device* device) {
           return device->device_type() == DEVICE_GPU;
         });
}

// Runs on the whole graph whenever a session's graph is created or extended.
Status StageGraph(const GraphOptimizationPassOptions& options, Graph* graph) {
  const ConfigProto& config = options.session_options->config;
  SmartStageSettings settings;
  TF_RETURN_IF_ERROR(ReadSmartStageSettings(config, &settings));
  if (!settings.finds_stages() && !HasStage(*graph)) return OkStatus();
  ForgetDevicesOfBufferOps(graph);
  const KnownOfGraph known = Recall(options, *graph);
  GraphHistory* const history = known.history.get();
  const NodeFilter& counts = known.counts;
  if (known.started_without_stages) {
    settings.enabled = false;
    settings.async_embedding.enabled = false;
  }
  RewriteOptions rewrite;
  rewrite.buffer = settings.buffer;
  rewrite.on_cpu = settings.on_cpu;
  if (!HasGpu(options.device_set)) {
    rewrite.on_cpu = settings.on_cpu.value_or(false);
  }
  rewrite.session = options.session_handle;
  rewrite.infer_shapes =
      !config.graph_options().rewrite_options().disable_meta_optimizer();
  const NodeFilter counts_after = AfterRewrite(counts, *graph);
  std::vector<LateStage> late;
  TF_RETURN_IF_ERROR(
      AlignStages(counts, settings.content, rewrite, graph, &late));
  const StagePlan plan(*graph, settings.enabled, settings.name, counts_after,
                       settings.content,
                       AlignmentOfSmartStage(CanUnstageForRun(),
                                             settings.async_embedding.enabled));
  std::vector<PrefetchRunnerOptions> runners = RunnersOfPlan(plan, settings);
  // Running stages do not change, and have been logged already.
  const bool logs =
      !counts.graph_grows() && options.session_handle != kAskingSession;
  if (logs && settings.enabled) {
    LogStages(plan, *graph, history);
  }
  const std::vector<StageNote> notes = NotesOnChangingState(plan, *graph);
  const std::vector<StageNote> notes_on_python = NotesOnPython(plan);
  TF_RETURN_IF_ERROR(RewriteStages(plan, rewrite, graph));
  if (settings.async_embedding.enabled) {
    TF_RETURN_IF_ERROR(StageLookups(settings, counts_after, logs, rewrite,
                                    history, &runners, graph));
  }
  if (counts.graph_grows()) {
    TF_RETURN_IF_ERROR(ConnectLateSources(counts_after, graph));
  }
  TF_RETURN_IF_ERROR(AddRunnersNode(runners, options.session_handle, graph));
  TF_RETURN_IF_ERROR(AddNotes(notes, graph));
  TF_RETURN_IF_ERROR(AddNotes(notes_on_python, graph));
  TF_RETURN_IF_ERROR(AddNotes(NotesOnLateStages(late), graph));
  if (history != nullptr) history->RememberBuffers(*graph);
  return OkStatus();
}

// Whether two devices are streams of one GPU of this process.
bool AreOnSameGpu(const DeviceSet* devices, const std::string& a,
                  const std::string& b) {
  if (devices == nullptr) return false;
  KernelStream streams[2];
  const std::string* const names[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    const Device* const device = devices->FindDeviceByName(*names[i]);
    if (device == nullptr || !KernelStream::Of(*device, &streams[i]).ok()) {
      return false;
    }
  }
  return streams[0].IsOnSameGpu(streams[1]);
}

// Chooses where the records are. Those of stages that run stay there.
Status PlaceRecordsOfSession(const GraphOptimizationPassOptions& options,
                             Graph* graph) {
  core::RefCountPtr<GraphHistory> history;
  PlacesOfStages places;
  if (options.device_set != nullptr) {
    history = GraphHistory::Of(options.session_handle, *options.device_set);
    if (history != nullptr) {
      places = history->PlacesIfRunning(*options.device_set);
    }
  }
  TF_RETURN_IF_ERROR(PlaceRecords(&places, graph));
  if (history != nullptr) history->RememberPlaces(std::move(places));
  return OkStatus();
}

// Chooses the devices of the ops around buffers after placement, when the
// devices of the step are known.
Status DeliverRecords(const GraphOptimizationPassOptions& options,
                      Graph* graph) {
  TF_RETURN_IF_ERROR(HandOverRecords(
      [&options](const std::string& a, const std::string& b) {
        return AreOnSameGpu(options.device_set, a, b);
      },
      graph));
  MoveControlOpsToCpu(graph);
  if (!HasStage(*graph)) return OkStatus();
  TF_RETURN_IF_ERROR(PlaceRecordsOfSession(options, graph));
  return AddNotes(NotesOnUnownedReads(*graph), graph);
}

// Runs on the graph of each run. Rejects a run that would read an
// iterator beside a stage, and marks the buffers that the run uses.
// Once a buffer has been used, the regions no longer change. A run of one of several
// producers says when it reads no more.
Status PrepareRun(const GraphOptimizationPassOptions& options, Graph* graph) {
  if (options.device_set == nullptr) return OkStatus();
  TF_RETURN_IF_ERROR(CheckNoSourceReadsBeside(*graph));
  TF_RETURN_IF_ERROR(CheckFeedsAreNotDrawnAgain(*graph));
  GraphHistory::MarkBuffersUsed(*graph, *options.device_set);
  return AddEndOfReads(graph);
}

// Before functional control flow is lowered (10): a control flow op can be
// staged while it is one node.
REGISTER_OPTIMIZATION(OptimizationPassRegistry::PRE_PLACEMENT, 5,
                      GraphPass<StageGraph>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_PLACEMENT, 5,
                      GraphPass<DeliverRecords>);
REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 5,
                      GraphPass<PrepareRun>);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
