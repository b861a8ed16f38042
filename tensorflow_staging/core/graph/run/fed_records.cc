// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/fed_records.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsPlaceholder(const Node& node) {
  return absl::StartsWith(node.type_string(), "Placeholder") &&
         node.num_inputs() == 0;
}

bool IsPassed(const Node& node) { return PassesOn(node) || IsPass(node); }

// Walks from the tensors of records that a run uses back to what they are made
// from. All of it is ahead of the step.
class Walk {
 public:
  Walk(const Graph& graph, const NameTable& marks, const RunRequest& run,
       bool is_staged_run, ConstructNodes* construct_nodes)
      : marks_(marks),
        run_(run),
        is_staged_run_(is_staged_run),
        construct_nodes_(*construct_nodes) {
    for (const Node* node : graph.op_nodes()) {
      if (IsValueOfFeed(*node)) values_of_feeds_.push_back(node);
      if (IsBufferTake(*node)) take_names_.insert(NameOf(*node));
      if (!IsBufferPut(*node)) continue;
      if (const auto buffer = BufferOf(*node)) puts_[*buffer].push_back(node);
    }
    for (const auto& [stage, name] : marks.take_stand_ins) {
      take_names_.insert(name);
    }
  }

  // The run uses `output` of `take`, by the name of the Take if `is_named`.
  Status Visit(const Node& take, int output, bool is_named) {
    const std::optional<BufferKey> buffer = BufferOf(take);
    if (!buffer) return OkStatus();
    stage_ = buffer->name;
    EnterRecord(*buffer, output, is_named);
    while (!to_visit_.empty()) {
      const Tensor tensor = to_visit_.back();
      to_visit_.pop_back();
      TF_RETURN_IF_ERROR(VisitTensor(tensor));
    }
    return OkStatus();
  }

  // Whether `node` passes on a tensor under a name that is not that of a Take. So
  // its value does not depend on what is fed to a Take from which it gets that.
  bool HasOwnName(const Node& node) const {
    return (IsStandIn(node) || IsPass(node)) &&
           take_names_.count(NameOf(node)) == 0;
  }

 private:
  // An output of a node, and whether its name matters. In a chain, what a record
  // carries under another name may come from the Take of the stage before.
  using Tensor = std::tuple<const Node*, int, bool>;

  // The name under which a run feeds `node`.
  std::string NameOf(const Node& node) const {
    if (const auto original = marks_.OriginalOf(node)) return *original;
    return CopiedNode(node).value_or(node.name());
  }

  void Add(const Node* node, int output, bool is_named = true) {
    const Tensor tensor = {node, output, is_named};
    if (node->IsOp() && seen_.insert(tensor).second) {
      to_visit_.push_back(tensor);
    }
  }

  // Visits what the Puts of `buffer` put at `output`.
  void EnterRecord(const BufferKey& buffer, int output, bool is_named) {
    for (const Node* put : puts_[buffer]) {
      const Edge* edge = nullptr;
      if (put->input_edge(output, &edge).ok()) {
        Add(edge->src(), edge->src_output(), is_named);
      }
    }
  }

  Status VisitTensor(const Tensor& tensor) {
    const auto [visited, output, is_named] = tensor;
    const Node& node = *visited;
    const std::optional<BufferKey> buffer =
        IsBufferTake(node) ? BufferOf(node) : std::nullopt;
    if (buffer && !is_named) {
      EnterRecord(*buffer, output, is_named);
      return OkStatus();
    }
    const TensorId* const fed = run_.FindFed(NameOf(node), output);
    if (IsFedByStages(node, output)) {
      // The run of a stage feeds what its stage does, and its records come from
      // stages that do so by themselves.
      if (fed != nullptr && !is_staged_run_) return FedByBothError(*fed);
      for (const Node* value : values_of_feeds_) {
        for (int i = 0; i < value->num_outputs(); ++i) {
          if (value->output_type(i) == node.output_type(output)) Add(value, i);
        }
      }
      return OkStatus();
    }
    if (fed != nullptr) return FedError(*fed, node);
    if (buffer) {
      EnterRecord(*buffer, output, is_named);
      return OkStatus();
    }
    return VisitInputs(node, output);
  }

  Status VisitInputs(const Node& node, int output) {
    if (IsPassed(node)) {
      VisitBehind(node, output);
      return OkStatus();
    }
    if (const TensorId* fed = FedTake(node)) return FedError(*fed, node);
    for (const Edge* edge : node.in_edges()) {
      if (!edge->IsControlEdge()) {
        Add(edge->src(), edge->src_output());
      } else if (construct_nodes_.IsChoice(*edge)) {
        // The first node of a branch may have no outputs.
        for (int i = Graph::kControlSlot; i < edge->src()->num_outputs(); ++i) {
          Add(edge->src(), i);
        }
      }
    }
    return OkStatus();
  }

  // Visits what `node` passes on.
  void VisitBehind(const Node& node, int output) {
    const Edge* edge = EdgePassedOn(node, output);
    absl::flat_hash_set<const Node*> seen;
    while (edge != nullptr && IsPassed(*edge->src()) &&
           seen.insert(edge->src()).second) {
      edge = EdgePassedOn(*edge->src(), edge->src_output());
    }
    if (edge == nullptr) return;
    Add(edge->src(), edge->src_output(), !HasOwnName(node));
  }

  // Returns what the run feeds of a manual stage's Take that the original of
  // `node` uses, if `node` is a clone whose original does.
  const TensorId* FedTake(const Node& node) const {
    const std::optional<std::string> original = marks_.OriginalOf(node);
    const MarkedClone* const clone =
        original ? marks_.FindClone(*original) : nullptr;
    if (clone == nullptr) return nullptr;
    const std::string* const take = marks_.FindTakeStandIn(clone->mark.stage);
    if (take == nullptr) return nullptr;
    for (const TakenInput& taken : clone->mark.taken_inputs) {
      if (taken.input == Graph::kControlSlot) continue;
      if (const auto* fed = run_.FindFed(*take, taken.take_output)) return fed;
    }
    return nullptr;
  }

  std::string WhatIsFed(const TensorId& fed) const {
    return absl::StrCat("Tensor '", fed.ToString(),
                        "' is fed, but the run uses a record of stage '",
                        stage_,
                        "', which was computed from that tensor ahead of the "
                        "step, without the fed value. ");
  }

  Status FedError(const TensorId& fed, const Node& node) const {
    return errors::InvalidArgument(
        WhatIsFed(fed),
        IsPlaceholder(node)
            ? "The stage runs by itself, so what a step feeds does not reach "
              "it. Give tf.staged the values, by feed_dict or feed_generator. "
            : "",
        "Feed what tf.staged has returned, as well or instead.");
  }

  Status FedByBothError(const TensorId& fed) const {
    return errors::InvalidArgument(
        WhatIsFed(fed),
        "The stage feeds it itself, with what its feed_dict or feed_generator "
        "says. Feed what tf.staged has returned, as well or instead: for other "
        "data, sess.run(features, feeds) computes it. If the step needs a value "
        "of its own, give it another placeholder than the stage.");
  }

  const NameTable& marks_;
  const RunRequest& run_;
  // Whether the run puts records.
  const bool is_staged_run_;
  ConstructNodes& construct_nodes_;
  std::map<BufferKey, std::vector<const Node*>> puts_;
  // What yields the values that stages feed.
  std::vector<const Node*> values_of_feeds_;
  // The names of the Takes, those that have only stand-ins included.
  std::set<std::string> take_names_;
  std::string stage_;
  std::set<Tensor> seen_;
  std::vector<Tensor> to_visit_;
};

// Visits the Take behind `output` of `node`, if the run gets that from a record.
Status VisitUsed(const Node* node, int output, const RunRequest& run,
                 Walk* walk) {
  std::set<std::pair<const Node*, int>> seen;
  bool is_named = true;
  while (seen.insert({node, output}).second) {
    if (is_named && run.FindFed(node->name(), output)) return OkStatus();
    if (IsBufferTake(*node)) return walk->Visit(*node, output, is_named);
    is_named &= !walk->HasOwnName(*node);
    if (!PassesOn(*node)) return OkStatus();
    const Edge* const edge = EdgePassedOn(*node, output);
    if (edge == nullptr) return OkStatus();
    node = edge->src();
    output = edge->src_output();
  }
  return OkStatus();
}

}  // namespace

bool FeedsAndTakes(const RunRequest& run,
                   const std::vector<const Node*>& needed) {
  return !run.fed().empty() && absl::c_any_of(needed, [](const Node* node) {
    return IsBufferTake(*node);
  });
}

Status CheckRecordsAreNotFed(const Graph& graph, const NameTable& marks,
                             const RunRequest& run,
                             const std::vector<const Node*>& needed,
                             ConstructNodes* construct_nodes) {
  const bool is_staged_run = absl::c_any_of(
      needed, [](const Node* node) { return IsBufferPut(*node); });
  Walk walk(graph, marks, run, is_staged_run, construct_nodes);
  for (const Node* node : needed) {
    for (const TensorId& wanted : run.wanted()) {
      if (wanted.node() != node->name() || wanted.index() < 0) continue;
      TF_RETURN_IF_ERROR(VisitUsed(node, wanted.index(), run, &walk));
    }
    // What passes on several tensors may be needed for one of them.
    if (PassesOn(*node)) continue;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) continue;
      TF_RETURN_IF_ERROR(
          VisitUsed(edge->src(), edge->src_output(), run, &walk));
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
