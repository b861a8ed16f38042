// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/fed_records.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsFromSource(const Node& node) {
  return absl::c_any_of(WithAncestors({&node}), [](const Node* ancestor) {
    return IsSourceOp(*ancestor) || IsBufferTake(*ancestor);
  });
}

// The tensor of `edge`, before a node that guards it from optimizers
// (pack_guard.h).
TakenTensor WithoutGuard(const Edge& edge) {
  const Node& node = *edge.src();
  const Edge* guarded = nullptr;
  if (node.type_string() == kStagedNodeOp && !IsStandIn(node) &&
      node.num_inputs() == 1 && node.input_edge(0, &guarded).ok()) {
    return {guarded->src(), guarded->src_output()};
  }
  return {&node, edge.src_output()};
}

// Walks from what a run uses of its records back to what they are made from.
class Walk {
 public:
  Walk(const Graph& graph, const NameTable& marks, const RunRequest& run)
      : marks_(marks), run_(run) {
    for (const Node* node : graph.op_nodes()) {
      if (!IsBufferPut(*node)) continue;
      if (const auto buffer = BufferOf(*node)) puts_[*buffer].push_back(node);
    }
    for (const auto& [stage, name] : marks.take_stand_ins) {
      take_stand_ins_.insert(name);
    }
  }

  // The run uses `taken`, an output of a Take, in the node `user`. Null if it
  // fetches that.
  Status Visit(const TakenTensor& taken, const Node* user) {
    take_ = taken.node;
    if (run_.FindFed(take_->name(), taken.output) != nullptr) return OkStatus();
    EnterRecord(taken, user, /*is_divided=*/false);
    while (!to_visit_.empty()) {
      const auto [node, output, is_divided] = to_visit_.back();
      to_visit_.pop_back();
      const TensorId* const fed = run_.FindFed(NameOf(*node), output);
      if (fed == nullptr) {
        VisitInputs(*node, is_divided);
      } else if (is_divided && IsFromSource(*node)) {
        return FedError(*fed);
      }
    }
    return OkStatus();
  }

 private:
  // An output of a node, and whether the user has divided the graph between it
  // and the run. Where SmartStage has, the step computes with what is fed.
  using Tensor = std::tuple<const Node*, int, bool>;

  // The name under which a run feeds `node`.
  std::string NameOf(const Node& node) const {
    if (const auto original = marks_.OriginalOf(node)) return *original;
    return CopiedNode(node).value_or(node.name());
  }

  void Add(const Node* node, int output, bool is_divided) {
    const Tensor tensor = {node, output, is_divided};
    if (seen_.insert(tensor).second) to_visit_.push_back(tensor);
  }

  void EnterRecord(const TakenTensor& taken, const Node* user,
                   bool is_divided) {
    const std::optional<BufferKey> buffer = BufferOf(*taken.node);
    if (!buffer) return;
    is_divided |= user == nullptr || !(IsStandIn(*user) || IsPass(*user)) ||
                  take_stand_ins_.count(NameOf(*user)) > 0;
    for (const Node* put : puts_[*buffer]) {
      const Edge* edge = nullptr;
      if (put->input_edge(taken.output, &edge).ok()) {
        Add(edge->src(), edge->src_output(), is_divided);
      }
    }
  }

  void VisitInputs(const Node& node, bool is_divided) {
    const std::optional<std::string> original = marks_.OriginalOf(node);
    const MarkedClone* const clone =
        original && !IsPass(node) ? marks_.FindClone(*original) : nullptr;
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() || !edge->src()->IsOp()) continue;
      const bool is_taken =
          clone != nullptr && IsTakenInput(clone->mark, *edge);
      if (is_taken && IsTakeFed(clone->mark, edge->dst_input())) continue;
      const TakenTensor from = WithoutGuard(*edge);
      if (IsBufferTake(*from.node)) {
        EnterRecord(from, &node, is_divided || is_taken);
      } else {
        Add(from.node, from.output, is_divided || is_taken);
      }
    }
  }

  // Whether the run feeds what the original of a clone took.
  bool IsTakeFed(const CloneMark& mark, int input) const {
    const std::string* const take = marks_.FindTakeStandIn(mark.stage);
    return take != nullptr &&
           absl::c_any_of(mark.taken_inputs, [&](const TakenInput& taken) {
             return taken.input == input &&
                    run_.FindFed(*take, taken.take_output) != nullptr;
           });
  }

  Status FedError(const TensorId& fed) const {
    return errors::InvalidArgument(
        "Tensor '", fed.ToString(),
        "' is fed, but the run uses a record of stage '",
        BufferOf(*take_)->name,
        "', which was computed from that tensor ahead of the step, without the "
        "fed value. Feed what tf.staged has returned, as well or instead.");
  }

  const NameTable& marks_;
  const RunRequest& run_;
  std::map<BufferKey, std::vector<const Node*>> puts_;
  std::set<std::string> take_stand_ins_;
  const Node* take_ = nullptr;
  std::set<Tensor> seen_;
  std::vector<Tensor> to_visit_;
};

}  // namespace

bool FeedsAndTakes(const RunRequest& run,
                   const std::vector<const Node*>& needed) {
  return !run.fed().empty() && absl::c_any_of(needed, [](const Node* node) {
    return IsBufferTake(*node);
  });
}

Status CheckRecordsAreNotFed(const Graph& graph, const NameTable& marks,
                             const RunRequest& run,
                             const std::vector<const Node*>& needed) {
  Walk walk(graph, marks, run);
  for (const Node* node : needed) {
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) continue;
      const TakenTensor from = WithoutGuard(*edge);
      if (!IsBufferTake(*from.node)) continue;
      TF_RETURN_IF_ERROR(walk.Visit(from, node));
    }
    if (!IsBufferTake(*node)) continue;
    for (const TensorId& wanted : run.wanted()) {
      if (wanted.node() != node->name() || wanted.index() < 0) continue;
      TF_RETURN_IF_ERROR(walk.Visit({node, wanted.index()}, /*user=*/nullptr));
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
