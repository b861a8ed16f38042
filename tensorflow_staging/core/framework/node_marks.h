// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_NODE_MARKS_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_NODE_MARKS_H_

#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// After the rewrite, the name of a node in a region belongs to a stand-in on
// the step's side, and a clone computes the node's value ahead of the step.
// Marks, which are attributes, connect the two for runs that name the node.
//
// Any client of a server can send a graph with such attributes. So the
// functions that read a mark return INVALID_ARGUMENT, with the node, the
// attribute and its wrong value, if the mark is incomplete or does not fit its
// node.

// An input that the original of a clone had from the Take of a manual stage.
// Both are Graph::kControlSlot for a control edge.
struct TakenInput {
  int input;
  int take_output;
};

// The mark of a clone, which computes ahead of the step.
struct CloneMark {
  std::string stage;
  // The name of the node that was cloned.
  std::string original;
  std::vector<TakenInput> taken_inputs;
  // If the clone was a stand-in, the stage that it was a stand-in of: the stage
  // before in a chain. Such a clone only passes on the values of that stage's
  // records. Another clone, in that stage, computes them, unless they are those
  // of a manual stage's Take.
  std::optional<std::string> passes_on;
};

// Marks `node`, which has the name of a node of a region, as its stand-in.
void MarkStandIn(const std::string& stage, Node* node);
// A clone that was a stand-in is none any more.
void MarkClone(const CloneMark& mark, Node* node);
// Marks `node` as a copy of the shared node `original` for a region on the CPU.
void MarkCopy(const std::string& original, Node* node);
// Marks `node` as a source that would read its iterator beside a stage. A run
// that needs it fails with the message `error`.
void MarkReadsBeside(const std::string& error, Node* node);

// Marks `node` as one that is drawn to compute what manual stages feed, and
// `take` as the Take of a stage with feeds. A run needs at most one of them.
void MarkReadForFeeds(Node* node);
void MarkHasFeeds(Node* take);

// Returns whether tf.train.mark_target_node has marked `node`, a node of the
// user's graph.
bool IsMarkedTarget(const Node& node);

// Returns whether manual stages feed the tensor, or the tensor of the edge; and
// whether what `node` yields is fed by one.
bool IsFedByStages(const Node& node, int output);
bool IsFedByStages(const Edge& edge);
bool IsValueOfFeed(const Node& node);

// Returns whether tf.staging.allow_stale has marked `node`, a variable.
bool MayBeStale(const Node& node);

// Returns whether tf.async_embedding_mark_node has marked `node`.
bool IsMarkedEmbedding(const Node& node);

bool IsStandIn(const Node& node);
bool IsClone(const Node& node);

// Returns whether `node` is a clone that was a stand-in (CloneMark::passes_on).
bool IsPass(const Node& node);

// Sets `*stage` to the stage of which `node` is marked as a stand-in, or to
// nothing.
Status ReadStandInMark(const Node& node, std::optional<std::string>* stage);
// Sets `*mark` to the mark of `node`, or to nothing if `node` has no such mark.
Status ReadCloneMark(const Node& node, std::optional<CloneMark>* mark);

// Sets `*outputs` to the outputs at which `stand_in` passes on its inputs, by
// input. Returns INVALID_ARGUMENT if it has wrong attributes.
Status OutputsOfInputs(const Node& stand_in, std::vector<int>* outputs);

// Returns whether `node` only passes on tensors: a stand-in, or a node between a
// Take and its users. EdgePassedOn returns the edge by which it gets what it
// passes on at `output`, or null.
bool PassesOn(const Node& node);
const Edge* EdgePassedOn(const Node& node, int output);

// An output of a Take, or of another source.
struct TakenTensor {
  const Node* node;
  int output;
};

// Returns the tensor that a stand-in gets by `edge`: an output of its stage's
// Take, perhaps through a node that guards it from optimizers (pack_guard.h)
// or, in a chain, through the stand-in of the Take of an earlier stage.
TakenTensor TakenTensorOf(const Edge& edge);

// Returns whether the original of a clone with this mark had the input of
// `edge`, an edge to the clone, from the Take of a manual stage.
bool IsTakenInput(const CloneMark& mark, const Edge& edge);

// Returns the name of the node of which `node` is marked as a copy.
std::optional<std::string> CopiedNode(const Node& node);

// Returns the message of MarkReadsBeside.
std::optional<std::string> ErrorOfReadingBeside(const Node& node);

bool IsReadForFeeds(const Node& node);
bool HasFeeds(const Node& take);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_NODE_MARKS_H_
