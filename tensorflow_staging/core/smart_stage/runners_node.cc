// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/runners_node.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// The tensor that a staged run of `put` fetches if its stage needs the check.
std::string PutCheck(absl::string_view put) {
  return absl::StrCat(put, kPutDoneSuffix, ":0");
}

PrefetchRunnerOptions RunnerOf(const PlannedStage& stage,
                               const SmartStageSettings& settings) {
  PrefetchRunnerOptions runner = settings.runner;
  runner.set_name(stage.name);
  const std::string put = stage.NodeName(kPutOp);
  for (int i = 0; i < settings.num_threads; ++i) {
    runner.add_fetch_ops(stage.check_puts ? PutCheck(put) : put);
  }
  runner.set_tune_threads(settings.tune_threads);
  runner.set_cancel_op(stage.NodeName(kCancelOp));
  runner.set_resume_op(stage.NodeName(kResumeOp));
  runner.set_close_op(stage.NodeName(kCloseOp));
  runner.set_error_code_tensor(
      absl::StrCat(stage.NodeName("error_code"), ":0"));
  runner.set_error_message_tensor(
      absl::StrCat(stage.NodeName("error_message"), ":0"));
  runner.set_stats_tensor(absl::StrCat(stage.NodeName(kStatsOp), ":0"));
  runner.set_discard_tensor(absl::StrCat(stage.NodeName(kDiscardOp), ":0"));
  return runner;
}

// Returns whether `runner` runs one of `puts`. Two manual stages may give their
// runners the same name.
template <typename Names>
bool RunsAny(const PrefetchRunnerOptions& runner, const Names& puts) {
  return absl::c_any_of(puts, [&runner](const std::string& put) {
    return absl::c_linear_search(runner.fetch_ops(), put);
  });
}

// Adds `runner` of a stage that SmartStage created, or lets the manual stage
// with the same Puts check them.
void Add(const PrefetchRunnerOptions& runner,
         std::vector<PrefetchRunnerOptions>* runners) {
  if (!runner.cancel_op().empty()) {
    runners->push_back(runner);
    return;
  }
  for (PrefetchRunnerOptions& known : *runners) {
    if (!RunsAny(known, runner.fetch_ops())) continue;
    for (std::string& op : *known.mutable_fetch_ops()) {
      const std::string check = PutCheck(op);
      if (absl::c_linear_search(runner.fetch_ops(), check)) op = check;
    }
  }
}

}  // namespace

std::vector<PrefetchRunnerOptions> RunnersOfPlan(
    const StagePlan& plan, const SmartStageSettings& settings) {
  std::vector<PrefetchRunnerOptions> runners;
  for (const PlannedStage& stage : plan.stages()) {
    PrefetchRunnerOptions runner;
    if (stage.is_manual()) {
      if (!stage.check_puts) continue;
      for (const Node* put : stage.puts) {
        runner.add_fetch_ops(put->name());
        runner.add_fetch_ops(PutCheck(put->name()));
      }
    } else {
      runner = RunnerOf(stage, settings);
    }
    runners.push_back(std::move(runner));
  }
  return runners;
}

Status AddRunnersNode(const std::vector<PrefetchRunnerOptions>& runners,
                      const std::string& session_handle, Graph* graph) {
  Tensor value(DT_STRING, {static_cast<int64_t>(runners.size())});
  for (size_t i = 0; i < runners.size(); ++i) {
    value.vec<tstring>()(i) = runners[i].SerializeAsString();
  }
  Node* node = nullptr;
  return NodeBuilder(kRunnersNode, "Const")
      .Attr("dtype", value.dtype())
      .Attr("value", value)
      .Attr(kSessionAttr, session_handle)
      .Device("/device:CPU:0")
      .Finalize(graph, &node);
}

Status FindRunnersOfSession(
    Session* session, const std::vector<PrefetchRunnerOptions>& manual_stages,
    std::vector<PrefetchRunnerOptions>* runners,
    std::vector<StageNote>* notes) {
  *runners = manual_stages;
  // A session runs an earlier fetch again as it was before the graph has grown.
  // It forgets a callable.
  CallableOptions callable;
  callable.add_fetch(absl::StrCat(kRunnersNode, ":0"));
  callable.add_fetch(absl::StrCat(kNotesNode, ":0"));
  // The thread that asks runs the op, so that no other has to be woken.
  callable.mutable_run_options()->set_inter_op_thread_pool(-1);
  std::vector<Tensor> outputs;
  Session::CallableHandle handle;
  Status status = session->MakeCallable(callable, &handle);
  if (status.ok()) {
    RunMetadata metadata;
    status = session->RunCallable(handle, {}, &outputs, &metadata);
    session->ReleaseCallable(handle).IgnoreError();
  }
  // A graph without stages has no such nodes. Sessions report it differently.
  if ((errors::IsNotFound(status) || errors::IsInvalidArgument(status)) &&
      (absl::StrContains(status.message(), kRunnersNode) ||
       absl::StrContains(status.message(), kNotesNode))) {
    return OkStatus();
  }
  TF_RETURN_IF_ERROR(status);
  if (outputs[0].dtype() != DT_STRING) {
    return errors::Internal("Node '", kRunnersNode, "' yields ",
                            DataTypeString(outputs[0].dtype()),
                            " instead of strings.");
  }
  const auto serialized = outputs[0].flat<tstring>();
  for (int64_t i = 0; i < serialized.size(); ++i) {
    PrefetchRunnerOptions runner;
    if (!runner.ParseFromString(std::string(serialized(i)))) {
      return errors::Internal("Entry ", i, " of node '", kRunnersNode,
                              "' is not a serialized PrefetchRunnerOptions.");
    }
    Add(runner, runners);
  }
  return notes == nullptr ? OkStatus() : ParseNotes(outputs[1], notes);
}

Status FetchCounts(Session* session, const std::vector<std::string>& tensors,
                   std::vector<int64_t>* counts) {
  // The thread that asks runs the op.
  RunOptions run;
  run.set_inter_op_thread_pool(-1);
  for (const std::string& tensor : tensors) {
    std::vector<Tensor> outputs;
    RunMetadata metadata;
    TF_RETURN_IF_ERROR(
        session->Run(run, {}, {tensor}, {}, &outputs, &metadata));
    if (outputs[0].dtype() != DT_INT64 || outputs[0].NumElements() != 1) {
      return errors::InvalidArgument("Tensor '", tensor, "' is no number.");
    }
    counts->push_back(outputs[0].flat<int64_t>()(0));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
