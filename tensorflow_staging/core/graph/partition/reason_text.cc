// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/reason_text.h"

#include "tensorflow/core/platform/strcat.h"

namespace tensorflow {
namespace staging {
namespace {

const char* VerbPhrase(StepReason reason) {
  switch (reason) {
    case StepReason::kVariable:
      return "depends on variable";
    case StepReason::kPlaceholder:
      return "depends on placeholder";
    case StepReason::kTable:
      return "depends on a table that is written, ";
    case StepReason::kControlFlow:
      return "depends on control flow (Switch, Merge, Enter, ...) at";
    case StepReason::kCollective:
      return "depends on communication between devices at";
    case StepReason::kSaver:
      return "depends on saving or restoring at";
    case StepReason::kSummary:
      return "depends on summary";
    case StepReason::kTarget:
      return "depends on a node marked by tf.train.mark_target_node,";
    case StepReason::kStagedByHand:
      return "belongs to a stage of tf.staged, of";
    case StepReason::kSideEffect:
      return "depends on an op with a state or side effect,";
    case StepReason::kSavedIterator:
      return "depends on an iterator whose position is saved by";
    case StepReason::kSharedIterator:
      return "depends on an iterator that the step may read as well, by";
    case StepReason::kOncePerRecordOnBothSides:
      return "depends on an op that runs once in each step and is used there "
             "apart from the records,";
    case StepReason::kMixedSources:
      return "depends on several sources that may advance apart, by";
    case StepReason::kNothingToCarry:
      return "yields no tensor to the step, which only waits for it";
    case StepReason::kUnneeded:
      return "is needed by no node of the step";
    case StepReason::kNoSource:
      return "depends on no source of records";
    case StepReason::kAddedLater:
      return "was added after the stages had begun to run";
    case StepReason::kNone:
      break;
  }
  return "runs ahead";
}

// What VerbPhrase becomes for the node in which the reason lies.
const char* OwnVerbPhrase(StepReason reason) {
  switch (reason) {
    case StepReason::kVariable:
      return "is a variable, or hands on a reference to one";
    case StepReason::kPlaceholder:
      return "is a placeholder";
    case StepReason::kTable:
      return "is a table that is written";
    case StepReason::kControlFlow:
      return "is control flow (Switch, Merge, Enter, ...)";
    case StepReason::kCollective:
      return "communicates between devices";
    case StepReason::kSaver:
      return "saves or restores";
    case StepReason::kSummary:
      return "makes a summary";
    case StepReason::kTarget:
      return "is marked by tf.train.mark_target_node";
    case StepReason::kStagedByHand:
      return "belongs to a stage of tf.staged";
    case StepReason::kSideEffect:
      return "has a state or side effect";
    case StepReason::kOncePerRecordOnBothSides:
      return "runs once in each step and is used there apart from the records";
    case StepReason::kMixedSources:
      return "depends on several sources that may advance apart";
    default:
      return VerbPhrase(reason);
  }
}

}  // namespace

std::string ReasonText(const Node& node, const LocatedReason& reason) {
  if (reason.node == &node) return OwnVerbPhrase(reason.reason);
  if (reason.node == nullptr) return VerbPhrase(reason.reason);
  return strings::StrCat(VerbPhrase(reason.reason), " '", reason.node->name(),
                         "' (", reason.node->type_string(), ")");
}

}  // namespace staging
}  // namespace tensorflow
