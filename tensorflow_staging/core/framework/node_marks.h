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

// After the rewrite a name of the user's graph belongs to a stand-in, on the
// step's side, and a clone computes its value ahead of the step. Attributes
// connect the two for runs that name the node.
//
// Any client of a server can send a graph with such attributes. So the readers
// return INVALID_ARGUMENT, with the node, the attribute and its value, where a
// mark is incomplete or does not fit its node.

// On the node that has the name of a node of a region.
struct StandInMark {
  std::string stage;
  // The outputs of the original that other nodes of the region use.
  std::vector<int> used_ahead;
};

// An input that the original of a clone had from the Take of a manual stage.
// Both are Graph::kControlSlot for a control edge.
struct TakenInput {
  int input;
  int take_output;
};

// On the node that computes ahead of the step.
struct CloneMark {
  std::string stage;
  // The name of the node that it is a clone of.
  std::string original;
  std::vector<TakenInput> taken_inputs;
};

void MarkStandIn(const StandInMark& mark, Node* node);
void MarkClone(const CloneMark& mark, Node* node);
// Makes `node` the Take of `stage`.
void MarkTake(const std::string& stage, Node* node);
// Makes `node` a copy, for a region on the CPU, of the shared node `original`.
void MarkCopy(const std::string& original, Node* node);

bool IsStandIn(const Node& node);
bool IsClone(const Node& node);

// `*mark` is empty if `node` has no such mark.
Status ReadStandInMark(const Node& node, std::optional<StandInMark>* mark);
Status ReadCloneMark(const Node& node, std::optional<CloneMark>* mark);

// The stage that `node` is marked for, as stand-in, clone or Take.
std::optional<std::string> MarkedStage(const Node& node);
// The name of the node that `node` is a copy of.
std::optional<std::string> CopiedNode(const Node& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_NODE_MARKS_H_
