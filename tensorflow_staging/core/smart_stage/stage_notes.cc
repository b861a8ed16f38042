// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/stage_notes.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/tstring.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/plan/stage_reads.h"
#include "tensorflow_staging/core/graph/plan/unowned_reads.h"

namespace tensorflow {
namespace staging {
namespace {

std::string Described(const Node& node) {
  return absl::StrCat("'", node.name(), "' (", node.type_string(), ")");
}

StageNote NoteOn(const PlannedStage& stage, const UnownedRead& read) {
  constexpr char kRemedy[] =
      " is initialised or restored, call tf.staging.discard(session): the "
      "stage does not see it, and the records that wait are old.";
  const std::string of_stage = absl::StrCat("Stage '", stage.name, "' ");
  switch (read.reason) {
    case UnownedRead::Reason::kOtherProcess:
      return {
          read.iterator->name(),
          absl::StrCat(of_stage, "reads iterator ", Described(*read.iterator),
                       " of another process, at ",
                       read.iterator->assigned_device_name(),
                       ", while its buffer is at ",
                       stage.puts.front()->assigned_device_name(),
                       ". Create the iterator on the device of the stage. "
                       "Otherwise, when the iterator",
                       kRemedy)};
    case UnownedRead::Reason::kRemoteCall:
      return {
          read.iterator->name(),
          absl::StrCat(of_stage, "reads iterator ", Described(*read.iterator),
                       " in ", Described(*read.reader),
                       ", which calls a function apart from the stage. "
                       "When the iterator",
                       kRemedy)};
    case UnownedRead::Reason::kEagerPython:
      break;
  }
  return {"", absl::StrCat(of_stage, "runs eager Python code in ",
                           Described(*read.reader),
                           ". When an iterator that it reads", kRemedy)};
}

Tensor Value(const std::vector<StageNote>& notes) {
  Tensor value(DT_STRING, {static_cast<int64_t>(notes.size()), 2});
  for (size_t i = 0; i < notes.size(); ++i) {
    value.matrix<tstring>()(i, 0) = notes[i].unsaved_iterator;
    value.matrix<tstring>()(i, 1) = notes[i].text;
  }
  return value;
}

}  // namespace

std::vector<StageNote> NotesOnChangingState(const StagePlan& plan,
                                            const Graph& graph) {
  std::vector<StageNote> notes;
  if (absl::c_none_of(plan.stages(), [](const PlannedStage& stage) {
        return stage.is_manual();
      })) {
    return notes;
  }
  const std::vector<StageReads> reads = FindStageReads(graph, plan);
  for (size_t i = 0; i < reads.size(); ++i) {
    const PlannedStage& stage = plan.stages()[i];
    if (!stage.is_manual()) continue;
    for (const StageReads::State& state : reads[i].changing) {
      notes.push_back(
          {"", absl::StrCat("Stage '", stage.name, "' reads ",
                            Described(*state.owner), ", which ",
                            Described(*state.changers.back()),
                            " may change: the records that wait then were "
                            "computed from the old value. After a change that "
                            "they must not miss, call "
                            "tf.staging.discard(session).")});
    }
  }
  return notes;
}

std::vector<StageNote> NotesOnPython(const StagePlan& plan) {
  std::vector<StageNote> notes;
  for (const PlannedStage& stage : plan.stages()) {
    if (stage.region == nullptr) continue;
    for (const Node* node : stage.region->nodes) {
      if (node->type_string() != "PyFunc" &&
          node->type_string() != "EagerPyFunc") {
        continue;
      }
      notes.push_back(
          {"", absl::StrCat(
                   "Stage '", stage.name, "' calls the Python function of ",
                   Described(*node),
                   " ahead of the step. If it reads what the program changes "
                   "while it trains, such as a variable, an object or NumPy's "
                   "generator, give its result to tf.train.mark_target_node, "
                   "which keeps it in the step. If not, "
                   "tf.numpy_function(..., stateful=False) says so.")});
    }
  }
  return notes;
}

std::vector<StageNote> NotesOnLateStages(const std::vector<LateStage>& stages) {
  std::vector<StageNote> notes;
  for (const LateStage& stage : stages) {
    notes.push_back(
        {"", absl::StrCat("Stage '", stage.name,
                          "' was added after the stages of the session had "
                          "begun to run, so its records carry only what "
                          "tf.staged got: a step that also uses '",
                          stage.source,
                          "' gets another element of it. Create the session "
                          "when the graph is complete.")});
  }
  return notes;
}

std::vector<StageNote> NotesOnUnownedReads(const Graph& graph) {
  std::vector<StageNote> notes;
  // The stages of SmartStage look like manual ones in a rewritten graph.
  const StagePlan plan(graph, /*smart_stage=*/false, /*name=*/"");
  const std::vector<std::vector<UnownedRead>> reads =
      FindUnownedReads(graph, plan);
  for (size_t i = 0; i < reads.size(); ++i) {
    for (const UnownedRead& read : reads[i]) {
      notes.push_back(NoteOn(plan.stages()[i], read));
    }
  }
  return notes;
}

Status AddNotes(const std::vector<StageNote>& notes, Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (node->name() != kNotesNode) continue;
    if (notes.empty()) return OkStatus();
    Tensor value;
    TF_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "value", &value));
    std::vector<StageNote> all;
    TF_RETURN_IF_ERROR(ParseNotes(value, &all));
    all.insert(all.end(), notes.begin(), notes.end());
    node->ClearAttr("value");
    node->AddAttr("value", Value(all));
    return OkStatus();
  }
  return AddConstant(kNotesNode, Value(notes), "/device:CPU:0", graph);
}

Status ParseNotes(const Tensor& value, std::vector<StageNote>* notes) {
  if (value.dtype() != DT_STRING || value.dims() != 2 ||
      value.dim_size(1) != 2) {
    return errors::Internal("Node '", kNotesNode, "' yields ",
                            value.DebugString(0),
                            " instead of pairs of strings.");
  }
  const auto pairs = value.matrix<tstring>();
  for (int64_t i = 0; i < value.dim_size(0); ++i) {
    notes->push_back({pairs(i, 0), pairs(i, 1)});
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
