// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/step_nodes.h"

#include <map>
#include <utility>
#include <vector>

#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/other_iterator_readers.h"
#include "tensorflow_staging/core/graph/facts/resources.h"
#include "tensorflow_staging/core/graph/partition/captured_resources.h"

namespace tensorflow {
namespace staging {
namespace {

void MoveStepRoles(const NodeFilter& filter, const StaleReads* stale,
                   const GivenRoles& given, PartitionState* state) {
  NodeRoles roles(state->graph(), filter, stale);
  std::vector<const Node*> with_side_effect;
  for (const Node* node : state->graph().op_nodes()) {
    if (!state->Counts(*node)) continue;
    const auto known = given.find(node);
    const RoleAndReason found =
        known == given.end() ? roles.Find(*node) : known->second;
    state->SetRole(*node, found.role);
    if (found.reason == StepReason::kSideEffect) {
      with_side_effect.push_back(node);
    } else if (found.role == NodeRole::kStepOnly) {
      const StaleReads::Use* use =
          stale == nullptr ? nullptr : stale->Find(*node);
      const bool uses_variable =
          use != nullptr && found.reason == StepReason::kVariable;
      state->MoveToStep(*node,
                        {found.reason, uses_variable ? use->variable : node});
    }
  }
  for (const Node* node : state->control_flow().irregular) {
    state->MoveToStep(*node, {StepReason::kControlFlow, node});
  }
  // A source in a branch or a loop is read as often as the branch is chosen or
  // the loop runs, not once for each record.
  for (const Node* source : state->sources()) {
    if (state->control_flow().is_inside[source->id()]) {
      state->MoveToStep(*source, {StepReason::kConditionalSource, source});
    }
  }
  // A marked source still yields records; the mark keeps its users in the step.
  for (const Node* source : state->sources()) {
    if (!IsMarkedTarget(*source)) continue;
    for (const Edge* edge : source->out_edges()) {
      if (state->Counts(*edge->dst())) {
        state->MoveToStep(*edge->dst(), {StepReason::kTarget, source});
      }
    }
  }
  // An op that reads or writes a variable also has a side effect, but the
  // variable is the better reason. So side effects come last.
  state->SpreadToDependents();
  for (const Node* node : with_side_effect) {
    state->MoveToStep(*node, {StepReason::kSideEffect, node});
  }
}

// Moves the sources and once-per-record ops that lead to a Put.
void MoveManualStages(PartitionState* state) {
  for (const Node* put : state->graph().op_nodes()) {
    if (!state->Counts(*put) || !IsBufferPut(*put)) continue;
    for (const Node* node : WithAncestors({put}, [state](const Edge& edge) {
           return state->Counts(*edge.src());
         })) {
      const NodeRole role = state->role(*node);
      if (role == NodeRole::kSource || role == NodeRole::kOncePerRecord) {
        state->MoveToStep(*node, {StepReason::kManualStage, put});
      }
    }
  }
}

// Moves the sources of iterators that may have another reader: each of its reads
// would make the stage do its work again.
void MoveIteratorsReadElsewhere(const NodeFilter& filter,
                                PartitionState* state) {
  const OtherIteratorReaders readers(state->graph(), state->resources(),
                                     filter);
  std::map<const Node*, const Node*> reader_of;
  for (const Node* source : state->sources()) {
    if (IsBufferTake(*source)) continue;
    const Node* owner = state->resources().IteratorOf(*source);
    const auto [it, inserted] = reader_of.emplace(owner, nullptr);
    if (inserted) it->second = readers.Find(*owner);
    if (it->second != nullptr) {
      state->MoveToStep(*source, {StepReason::kSharedIterator, it->second});
    }
  }
}

}  // namespace

void FindStepNodes(const NodeFilter& filter, const StaleReads* stale,
                   const GivenRoles& given, PartitionState* state) {
  MoveStepRoles(filter, stale, given, state);
  MoveManualStages(state);
  MoveIteratorsReadElsewhere(filter, state);
  MoveIteratorsOfChangingData(filter, state);
  state->SpreadToDependents();
}

}  // namespace staging
}  // namespace tensorflow
