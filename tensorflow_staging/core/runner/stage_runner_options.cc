// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/stage_runner_options.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/session/smart_stage_settings.h"

namespace tensorflow {
namespace staging {
namespace {

PrefetchRunnerOptions RunnerOf(const PlannedStage& stage,
                               const SmartStageSettings& settings) {
  PrefetchRunnerOptions runner = settings.runner;
  runner.set_name(stage.name);
  for (int i = 0; i < settings.num_threads; ++i) {
    runner.add_fetch_ops(stage.NodeName(kPutOp));
  }
  runner.set_cancel_op(stage.NodeName(kCancelOp));
  runner.set_resume_op(stage.NodeName(kResumeOp));
  runner.set_close_op(stage.NodeName(kCloseOp));
  runner.set_error_code_tensor(
      absl::StrCat(stage.NodeName("error_code"), ":0"));
  runner.set_error_message_tensor(
      absl::StrCat(stage.NodeName("error_message"), ":0"));
  return runner;
}

// Returns whether `runner` runs the Puts of `stage`. Two manual stages may give
// their runners the same name.
bool Runs(const PrefetchRunnerOptions& runner, const PlannedStage& stage) {
  return std::any_of(stage.puts.begin(), stage.puts.end(),
                     [&runner](const Node* put) {
                       return absl::c_linear_search(runner.fetch_ops(),
                                                    put->name());
                     });
}

}  // namespace

Status FindRunnerOptions(
    const Graph& graph, const ConfigProto& config,
    const std::vector<PrefetchRunnerOptions>& manual_stages,
    std::vector<PrefetchRunnerOptions>* runners, const NodeFilter& counts) {
  SmartStageSettings settings;
  TF_RETURN_IF_ERROR(ReadSmartStageSettings(config, &settings));
  const StagePlan plan(graph, settings.enabled, settings.name, counts);
  *runners = manual_stages;
  for (const PlannedStage& stage : plan.stages()) {
    const bool restartable = !stage.initializers.empty();
    if (!stage.is_manual()) {
      runners->push_back(RunnerOf(stage, settings));
      runners->back().set_restartable(restartable);
    } else if (restartable) {
      for (PrefetchRunnerOptions& runner : *runners) {
        if (Runs(runner, stage)) runner.set_restartable(true);
      }
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
