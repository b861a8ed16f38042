// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_NOTES_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_NOTES_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/plan/stage_plan.h"
#include "tensorflow_staging/core/graph/rewrite/stage_alignment.h"

namespace tensorflow {
namespace staging {

// What a program has to know about a stage before the stage starts. As with
// runners (runners_node.h), the session's graph holds the notes, in a
// constant that a client fetches by its name, kNotesNode.
struct StageNote {
  // The name of the iterator of which a checkpoint would leave out what was read
  // ahead; empty if the note is about something else.
  std::string unsaved_iterator;
  std::string text;
};

// Returns a note for each variable and table that a manual stage of `plan`, a
// plan of `graph`, reads and the program may change while it trains.
std::vector<StageNote> NotesOnChangingState(const StagePlan& plan,
                                            const Graph& graph);

// Returns a note for each call of a stateful Python function that SmartStage runs
// ahead: a graph does not show what of the program the function reads.
std::vector<StageNote> NotesOnPython(const StagePlan& plan);

// Returns a note for each stage that steps may use beside its own source.
std::vector<StageNote> NotesOnLateStages(const std::vector<LateStage>& stages);

// Returns a note for each iterator that a stage of `graph`, which has been
// rewritten and placed, reads where it does not see changes of the iterator.
std::vector<StageNote> NotesOnUnownedReads(const Graph& graph);

// Adds the constant that holds notes to `graph`, or adds notes to it.
Status AddNotes(const std::vector<StageNote>& notes, Graph* graph);

// Sets `*notes` to those that a session's kNotesNode yields.
Status ParseNotes(const Tensor& value, std::vector<StageNote>* notes);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_STAGE_NOTES_H_
