// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/node_marks.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

Status Malformed(const Node& node, const char* attr, const std::string& why) {
  return errors::InvalidArgument("Node '", node.name(), "' (",
                                 node.type_string(), ") has the attribute '",
                                 attr, "', which SmartStage writes, but ", why);
}

bool Has(const Node& node, const char* attr) {
  return node.attrs().Find(attr) != nullptr;
}

bool IsMarked(const Node& node, const char* attr) {
  bool marked = false;
  return TryGetNodeAttr(node.attrs(), attr, &marked) && marked;
}

std::optional<std::string> Text(const Node& node, const char* attr) {
  std::string text;
  if (!TryGetNodeAttr(node.attrs(), attr, &text)) return std::nullopt;
  return text;
}

// Reads the taken inputs of a clone. The attribute is a flat list in which each
// input is followed by its output of the Take, because an attribute cannot hold
// a list of pairs.
Status ReadTakenInputs(const Node& node, std::vector<TakenInput>* inputs) {
  if (!Has(node, kTakenInputsAttr)) return OkStatus();
  std::vector<int> pairs;
  if (!TryGetNodeAttr(node.attrs(), kTakenInputsAttr, &pairs) ||
      pairs.size() % 2 != 0) {
    return Malformed(node, kTakenInputsAttr,
                     "it is not a list of pairs of integers.");
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const TakenInput taken = {pairs[i], pairs[i + 1]};
    const bool control = taken.input == Graph::kControlSlot &&
                         taken.take_output == Graph::kControlSlot;
    const bool data = taken.input >= 0 && taken.input < node.num_inputs() &&
                      taken.take_output >= 0;
    if (!control && !data) {
      return Malformed(
          node, kTakenInputsAttr,
          absl::StrCat("the pair (", taken.input, ", ", taken.take_output,
                       ") is neither (-1, -1) nor one of its ",
                       node.num_inputs(), " inputs and an output."));
    }
    inputs->push_back(taken);
  }
  return OkStatus();
}

}  // namespace

void MarkStandIn(const std::string& stage, Node* node) {
  node->AddAttr(kStandInAttr, stage);
}

void MarkClone(const CloneMark& mark, Node* node) {
  node->AddAttr(kMarkedStageAttr, mark.stage);
  node->AddAttr(kOriginalAttr, mark.original);
  if (mark.passes_on) {
    node->ClearAttr(kStandInAttr);
    node->AddAttr(kPassesOnAttr, *mark.passes_on);
  }
  if (mark.taken_inputs.empty()) return;
  std::vector<int> pairs;
  for (const TakenInput& taken : mark.taken_inputs) {
    pairs.push_back(taken.input);
    pairs.push_back(taken.take_output);
  }
  node->AddAttr(kTakenInputsAttr, pairs);
}

void MarkCopy(const std::string& original, Node* node) {
  node->AddAttr(kCopyOfAttr, original);
}

void MarkReadsBeside(const std::string& error, Node* node) {
  node->AddAttr(kReadsBesideAttr, error);
}

void MarkReadForFeeds(Node* node) { node->AddAttr(kReadForFeedsAttr, true); }

void MarkHasFeeds(Node* take) { take->AddAttr(kHasFeedsAttr, true); }

bool IsReadForFeeds(const Node& node) { return Has(node, kReadForFeedsAttr); }

bool HasFeeds(const Node& take) { return Has(take, kHasFeedsAttr); }

bool IsMarkedTarget(const Node& node) { return IsMarked(node, kTargetAttr); }

bool IsFedByStages(const Node& node, int output) {
  std::vector<int> outputs;
  return TryGetNodeAttr(node.attrs(), kFedOutputsAttr, &outputs) &&
         absl::c_linear_search(outputs, output);
}

bool IsFedByStages(const Edge& edge) {
  return !edge.IsControlEdge() && edge.src()->IsOp() &&
         IsFedByStages(*edge.src(), edge.src_output());
}

bool IsValueOfFeed(const Node& node) { return IsMarked(node, kFeedValueAttr); }

bool MayBeStale(const Node& node) { return IsMarked(node, kMayBeStaleAttr); }

bool IsMarkedEmbedding(const Node& node) {
  return IsMarked(node, kEmbeddingAttr);
}

bool IsStandIn(const Node& node) { return Has(node, kStandInAttr); }

bool IsClone(const Node& node) { return Has(node, kOriginalAttr); }

bool IsPass(const Node& node) { return Has(node, kPassesOnAttr); }

Status ReadStandInMark(const Node& node, std::optional<std::string>* stage) {
  *stage = Text(node, kStandInAttr);
  if (*stage || !IsStandIn(node)) return OkStatus();
  return Malformed(node, kStandInAttr, "it is not a string.");
}

Status ReadCloneMark(const Node& node, std::optional<CloneMark>* mark) {
  mark->reset();
  if (!IsClone(node)) return OkStatus();
  CloneMark read;
  if (!TryGetNodeAttr(node.attrs(), kMarkedStageAttr, &read.stage)) {
    return Malformed(
        node, kOriginalAttr,
        absl::StrCat("'", kMarkedStageAttr, "' is missing or not a string."));
  }
  if (!TryGetNodeAttr(node.attrs(), kOriginalAttr, &read.original)) {
    return Malformed(node, kOriginalAttr, "it is not a string.");
  }
  TF_RETURN_IF_ERROR(ReadTakenInputs(node, &read.taken_inputs));
  read.passes_on = Text(node, kPassesOnAttr);
  if (!read.passes_on && Has(node, kPassesOnAttr)) {
    return Malformed(node, kPassesOnAttr, "it is not a string.");
  }
  *mark = std::move(read);
  return OkStatus();
}

Status OutputsOfInputs(const Node& stand_in, std::vector<int>* outputs) {
  outputs->clear();
  if (stand_in.type_string() != kStagedNodeOp) {
    for (int i = 0; i < stand_in.num_outputs(); ++i) outputs->push_back(i);
    return OkStatus();
  }
  TF_RETURN_IF_ERROR(GetNodeAttr(stand_in.attrs(), kIndicesAttr, outputs));
  for (int output : *outputs) {
    if (output < 0 || output >= stand_in.num_outputs()) {
      return errors::InvalidArgument(
          "Node '", stand_in.name(), "' (", kStagedNodeOp,
          ") has the attribute '", kIndicesAttr, "' with the entry ", output,
          "; it must be one of its ", stand_in.num_outputs(), " outputs.");
    }
  }
  return OkStatus();
}

bool PassesOn(const Node& node) {
  return IsStandIn(node) || node.type_string() == kStagedNodeOp;
}

const Edge* EdgePassedOn(const Node& node, int output) {
  std::vector<int> outputs;
  if (!OutputsOfInputs(node, &outputs).ok()) return nullptr;
  const auto it = absl::c_find(outputs, output);
  const Edge* edge = nullptr;
  if (it == outputs.end() ||
      !node.input_edge(it - outputs.begin(), &edge).ok()) {
    return nullptr;
  }
  return edge;
}

TakenTensor TakenTensorOf(const Edge& edge) {
  TakenTensor taken = {edge.src(), edge.src_output()};
  // Attributes that a client has set may make a circle.
  absl::flat_hash_set<const Node*> seen;
  while (PassesOn(*taken.node) && seen.insert(taken.node).second) {
    const Edge* const next = EdgePassedOn(*taken.node, taken.output);
    if (next == nullptr) break;
    taken = {next->src(), next->src_output()};
  }
  return taken;
}

bool IsTakenInput(const CloneMark& mark, const Edge& edge) {
  if (edge.IsControlEdge()) return false;
  for (const TakenInput& taken : mark.taken_inputs) {
    if (taken.input == edge.dst_input()) return true;
  }
  return false;
}

std::optional<std::string> CopiedNode(const Node& node) {
  return Text(node, kCopyOfAttr);
}

std::optional<std::string> ErrorOfReadingBeside(const Node& node) {
  return Text(node, kReadsBesideAttr);
}

}  // namespace staging
}  // namespace tensorflow
