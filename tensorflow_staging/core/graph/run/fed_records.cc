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
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsPlaceholder(const Node& node) {
  return absl::StartsWith(node.type_string(), "Placeholder") &&
         node.num_inputs() == 0;
}

// In place of an output: what is made from the node only waits for it.
constexpr int kAwaited = Graph::kControlSlot - 1;

// The name of a tensor.
using Name = std::pair<std::string, int>;

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
      if (!IsBufferPut(*node)) continue;
      if (const auto buffer = BufferOf(*node)) puts_[*buffer].push_back(node);
    }
  }

  // The run uses `output` of `take`: by its own name, or as the tensor `sought`.
  Status Visit(const Node& take, int output,
               const std::optional<Name>& sought) {
    const std::optional<BufferKey> buffer = BufferOf(take);
    if (!buffer) return OkStatus();
    stage_ = buffer->name;
    EnterRecord(*buffer, output, sought);
    while (!to_visit_.empty()) {
      const Tensor tensor = to_visit_.back();
      to_visit_.pop_back();
      TF_RETURN_IF_ERROR(VisitTensor(tensor));
    }
    return OkStatus();
  }

 private:
  // An output of a node. Its name does not matter if it only passes on a tensor with
  // another name, which is sought: a record carries equal tensors once, and in a
  // chain also what no region behind it has computed.
  using Tensor = std::tuple<const Node*, int, std::optional<Name>>;

  // The name under which a run feeds `node`.
  std::string NameOf(const Node& node) const {
    if (const auto original = marks_.OriginalOf(node)) return *original;
    return CopiedNode(node).value_or(node.name());
  }

  void Add(const Node* node, int output,
           const std::optional<Name>& sought = std::nullopt) {
    const Tensor tensor = {node, output, sought};
    if (node->IsOp() && seen_.insert(tensor).second) {
      to_visit_.push_back(tensor);
    }
  }

  // Visits what the Puts of `buffer` put at `output`.
  void EnterRecord(const BufferKey& buffer, int output,
                   std::optional<Name> sought) {
    // A Take that has a stand-in has lost its name to that.
    const std::string* const take = marks_.FindTakeStandIn(buffer.name);
    if (sought && take != nullptr && sought->first == *take) sought.reset();
    for (const Node* put : puts_[buffer]) {
      const Edge* edge = nullptr;
      if (put->input_edge(output, &edge).ok()) {
        Add(edge->src(), edge->src_output(), sought);
      }
    }
  }

  Status VisitTensor(const Tensor& tensor) {
    const auto& [visited, output, sought] = tensor;
    const Node& node = *visited;
    if (output == kAwaited) return VisitAwaited(node);
    const std::string name = NameOf(node);
    const std::optional<BufferKey> buffer =
        IsBufferTake(node) ? BufferOf(node) : std::nullopt;
    const bool only_passes_on = buffer || PassesOn(node) || IsPass(node);
    if (only_passes_on && sought && *sought != Name(name, output)) {
      VisitBehind(node, output, buffer, sought);
      return OkStatus();
    }
    const TensorId* const fed = run_.FindFed(name, output);
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
    if (only_passes_on) {
      const bool has_own_name = IsStandIn(node) || IsPass(node);
      VisitBehind(
          node, output, buffer,
          has_own_name ? std::optional<Name>({name, output}) : std::nullopt);
      return OkStatus();
    }
    return VisitInputs(node);
  }

  Status VisitInputs(const Node& node) {
    if (const TensorId* fed = FedTake(node)) return FedError(*fed, node);
    for (const Edge* edge : node.in_edges()) {
      if (!edge->IsControlEdge()) {
        Add(edge->src(), edge->src_output());
      } else if (construct_nodes_.IsChoice(*edge)) {
        // The first node of a branch may have no outputs.
        for (int i = Graph::kControlSlot; i < edge->src()->num_outputs(); ++i) {
          Add(edge->src(), i);
        }
      } else {
        Add(edge->src(), kAwaited);
      }
    }
    return OkStatus();
  }

  // A value that only waits for `node` does not depend on what the run feeds to it.
  // But a source has yielded an element, whichever iterator a fed handle names.
  Status VisitAwaited(const Node& node) {
    if (const auto buffer =
            IsBufferTake(node) ? BufferOf(node) : std::nullopt) {
      for (const Node* put : puts_[*buffer]) Add(put, kAwaited);
      return OkStatus();
    }
    if (IsSourceOp(node)) return VisitInputs(node);
    for (const Edge* edge : node.in_edges()) Add(edge->src(), kAwaited);
    return OkStatus();
  }

  // Visits what `node`, the Take of `buffer` if that is set, passes on.
  void VisitBehind(const Node& node, int output,
                   const std::optional<BufferKey>& buffer,
                   const std::optional<Name>& sought) {
    if (buffer) {
      EnterRecord(*buffer, output, sought);
    } else if (const Edge* edge = EdgePassedOn(node, output)) {
      Add(edge->src(), edge->src_output(), sought);
    }
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
  std::string stage_;
  std::set<Tensor> seen_;
  std::vector<Tensor> to_visit_;
};

// Visits the Take behind `output` of `node`, if the run gets that from a record.
Status VisitUsed(const Node* node, int output, const RunRequest& run,
                 Walk* walk) {
  std::set<std::pair<const Node*, int>> seen;
  std::optional<Name> sought;
  while (seen.insert({node, output}).second) {
    const bool is_sought = !sought || *sought == Name(node->name(), output);
    if (is_sought && run.FindFed(node->name(), output)) return OkStatus();
    if (IsBufferTake(*node)) {
      return walk->Visit(*node, output, is_sought ? std::nullopt : sought);
    }
    if (!PassesOn(*node)) return OkStatus();
    if (is_sought && IsStandIn(*node)) sought = {node->name(), output};
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
