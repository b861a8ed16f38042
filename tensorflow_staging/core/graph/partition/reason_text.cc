// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/reason_text.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/strcat.h"

namespace tensorflow {
namespace staging {
namespace {

struct Texts {
  StepReason reason = StepReason::kNone;
  // The phrase for a reason that is about another node, whose name follows, or
  // about no particular node.
  const char* verb_phrase = "runs ahead";
  // The phrase for the node that the reason is about, if it is another one.
  const char* own_verb_phrase = nullptr;
  const char* advice = "";
};

constexpr Texts kTexts[] = {
    {StepReason::kVariable, "depends on variable",
     "is a variable, or forwards a variable reference",
     "If only lookups read the variable and their values may be a little "
     "old, let them run ahead: set do_async_embedding, and "
     "async_embedding_options.capacity and threads_num, and mark the variable "
     "with tf.staging.allow_stale."},
    {StepReason::kPlaceholder, "depends on placeholder", "is a placeholder",
     "Let a tf.data dataset yield the value, or let tf.staged feed it with "
     "feed_dict."},
    {StepReason::kTable, "depends on a table that the graph writes to,",
     "is a table that the graph writes to",
     "Fill the table with its initialiser alone, before the first step."},
    {StepReason::kControlFlow,
     "depends on control flow (Switch, Merge, Enter, ...) that cannot run "
     "ahead as a whole, at",
     "is control flow (Switch, Merge, Enter, ...) that cannot run ahead as a "
     "whole",
     "Build it with tf.cond and tf.while_loop, or call "
     "tf.enable_control_flow_v2() before you build the graph."},
    {StepReason::kCollective, "depends on communication between devices at",
     "communicates between devices",
     "Let it use what the step computes alone, not what leads from a source "
     "to the step."},
    {StepReason::kSaver, "depends on saving or restoring at",
     "saves or restores",
     "Let it use what the step computes alone, not what leads from a source "
     "to the step."},
    {StepReason::kSummary, "depends on summary", "creates a summary",
     "Let no other node depend on the summary."},
    {StepReason::kTarget,
     "depends on a node marked by tf.train.mark_target_node,",
     "is marked by tf.train.mark_target_node",
     "Do not give the node to tf.train.mark_target_node, or mark a later "
     "node."},
    {StepReason::kManualStage,
     "depends on a source that a manual stage reads ahead, that of",
     "belongs to a manual stage",
     "Give its tf.staged what they use of the source, such as a label, and let "
     "them use what it returns."},
    {StepReason::kSideEffect, "depends on an op with a state or side effect,",
     "has a state or side effect",
     "Replace the op with one that has no state, such as tf.data instead of "
     "a queue, a reader or a counter."},
    {StepReason::kPython,
     "depends on a Python function, which may read what the program changes,",
     "calls a Python function, which may read what the program changes: "
     "tf.numpy_function(..., stateful=False) and the option python_ahead=True "
     "let it run ahead",
     "If it reads nothing that changes, call it by "
     "tf.numpy_function(..., stateful=False), or let all Python functions run "
     "ahead by the option python_ahead=True."},
    {StepReason::kSeededDraw, "depends on a draw with a seed of its own,",
     "draws with a seed of its own",
     "Draw from a tf.random.Generator, or with tf.random.stateless_uniform."},
    {StepReason::kConditionalSource,
     "depends on a source that is read in a branch or a loop,",
     "is read in a branch or a loop",
     "Call get_next() outside the branch or loop."},
    {StepReason::kSharedIterator,
     "depends on an iterator that the step may also read, through",
     "may read an iterator in the step",
     "Give the step an iterator of its own."},
    {StepReason::kChangingData,
     "depends on an iterator whose dataset uses a resource that the graph "
     "may change,",
     nullptr,
     "Let the dataset use a resource that only its initialiser changes."},
    {StepReason::kOncePerRecordOnBothSides,
     "depends on an op that must run once per record and that the step "
     "itself uses,",
     "must run once per record, and the step itself uses it",
     "Give the step an op of its own."},
    {StepReason::kMixedSources,
     "depends on several sources that the step may advance independently, at",
     "depends on several sources that the step may advance independently",
     "Put the datasets together with tf.data.Dataset.zip, so that there is "
     "one source."},
    {StepReason::kNothingToCarry, "has only control dependents in the step"},
    {StepReason::kNoLookup, "could run ahead only with a lookup"},
    {StepReason::kUnneeded, "is computed only if a run asks for it"},
    {StepReason::kNoSource, "depends on no source of records"},
    {StepReason::kAddedLater, "was added after the stages had begun to run"},
};

Texts TextsOf(StepReason reason) {
  const auto* const found = absl::c_find_if(
      kTexts, [reason](const Texts& texts) { return texts.reason == reason; });
  return found == std::end(kTexts) ? Texts() : *found;
}

}  // namespace

std::string ReasonText(const Node& node, const LocatedReason& reason) {
  const Texts texts = TextsOf(reason.reason);
  if (reason.node == nullptr) return texts.verb_phrase;
  if (reason.node == &node) {
    return texts.own_verb_phrase != nullptr ? texts.own_verb_phrase
                                            : texts.verb_phrase;
  }
  // Of an input of a function, the op says nothing.
  const std::string op =
      reason.node->IsArg()
          ? ""
          : strings::StrCat(" (", reason.node->type_string(), ")");
  return strings::StrCat(texts.verb_phrase, " '", reason.node->name(), "'", op);
}

const char* AdviceText(StepReason reason) { return TextsOf(reason).advice; }

}  // namespace staging
}  // namespace tensorflow
