// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/fed_ahead.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

// Spreads fed tensors along the data edges, from node to node of a branch or of
// the body of a loop, and to what waits for a source with a fed handle.
class Spread {
 public:
  Spread(const Graph& graph, const NameTable& marks, const RunRequest& run,
         ConstructNodes* construct_nodes)
      : graph_(graph),
        marks_(marks),
        run_(run),
        construct_nodes_(*construct_nodes) {}

  FedAhead Run() {
    for (const Node* node : graph_.op_nodes()) {
      if (!IsPass(*node)) continue;
      if (const auto original = marks_.OriginalOf(*node)) {
        passes_.emplace(*original, node);
      }
    }
    // Manual stages: clones read the Put's inputs, and their originals read the
    // Take.
    for (const auto& [name, clone] : marks_.clones) {
      if (const TensorId* fed = FedTake(clone.mark)) {
        Reach(*clone.node, *fed, /*only_waits=*/false);
      }
    }
    for (const Node* node : graph_.op_nodes()) {
      const std::optional<std::string> original = OriginalName(*node);
      const std::string& name = original ? *original : node->name();
      for (int output = 0; output < node->num_outputs(); ++output) {
        const TensorId* fed = run_.FindFed(name, output);
        if (fed == nullptr) continue;
        for (const Edge* edge : node->out_edges()) {
          if (edge->src_output() == output ||
              construct_nodes_.IsChoice(*edge)) {
            ReachAlong(*edge, *fed, /*only_waits=*/false);
          }
        }
      }
    }
    while (!to_visit_.empty()) {
      const Item item = to_visit_.back();
      to_visit_.pop_back();
      for (const Edge* edge : item.node->out_edges()) {
        ReachAlong(*edge, item.fed, item.only_waits || OnlyWaits(*edge));
      }
    }
    return std::move(found_);
  }

 private:
  struct Item {
    const Node* node;
    TensorId fed;
    // Whether the node only waits for one that depends on what is fed.
    bool only_waits;
  };

  // The name under which a run feeds `node`, if the node has another name.
  std::optional<std::string> OriginalName(const Node& node) const {
    const std::optional<std::string> original = marks_.OriginalOf(node);
    return original ? original : CopiedNode(node);
  }

  const TensorId* FedTake(const CloneMark& mark) const {
    if (mark.taken_inputs.empty()) return nullptr;
    const std::string* take = marks_.FindTakeStandIn(mark.stage);
    if (take == nullptr) return nullptr;
    for (const TakenInput& taken : mark.taken_inputs) {
      if (taken.input == Graph::kControlSlot) continue;
      if (const TensorId* fed = run_.FindFed(*take, taken.take_output)) {
        return fed;
      }
    }
    return nullptr;
  }

  // What only waits for a node does not depend on what is fed to it. But a source
  // yields an element of the iterator whose handle is fed.
  bool OnlyWaits(const Edge& edge) {
    return edge.IsControlEdge() && !construct_nodes_.IsChoice(edge) &&
           !IsSourceOp(*edge.src());
  }

  void ReachAlong(const Edge& edge, const TensorId& fed, bool only_waits) {
    const Node& node = *edge.dst();
    // What has the name of another node passes on that node's value, which does
    // not depend on the name of the Take.
    if (!node.IsOp() || IsStandIn(node) || IsPass(node)) return;
    const std::optional<std::string> original = marks_.OriginalOf(node);
    // The user divided the graph at the Take of a manual stage, so what is fed
    // before it does not reach the region.
    const MarkedClone* clone = original ? marks_.FindClone(*original) : nullptr;
    if (clone != nullptr && IsTakenInput(clone->mark, edge)) {
      return;
    }
    Reach(node, fed, only_waits);
  }

  void Reach(const Node& node, const TensorId& fed, bool only_waits) {
    if (!Visit(node, fed, only_waits)) return;
    const std::optional<std::string> original = marks_.OriginalOf(node);
    if (!original) return;
    if (only_waits) {
      found_.waiting.insert(*original);
    } else {
      if (const MarkedClone* clone = marks_.FindClone(*original)) {
        found_.stages.emplace(clone->mark.stage, fed);
      }
      found_.nodes.emplace(*original, fed);
    }
    // The next stages of a chain use the value through their passes.
    const auto passes = passes_.equal_range(*original);
    for (auto it = passes.first; it != passes.second; ++it) {
      if (!Visit(*it->second, fed, only_waits) || only_waits) continue;
      std::optional<CloneMark> mark;
      if (ReadCloneMark(*it->second, &mark).ok() && mark) {
        found_.stages.emplace(mark->stage, fed);
      }
    }
  }

  // Returns whether the node had not been reached in this way.
  bool Visit(const Node& node, const TensorId& fed, bool only_waits) {
    if (!reached_.emplace(&node, only_waits).second) return false;
    to_visit_.push_back({&node, fed, only_waits});
    return true;
  }

  const Graph& graph_;
  const NameTable& marks_;
  const RunRequest& run_;
  ConstructNodes& construct_nodes_;
  // By the name of what they pass on.
  std::multimap<std::string, const Node*> passes_;
  // With whether they only wait.
  absl::flat_hash_set<std::pair<const Node*, bool>> reached_;
  std::vector<Item> to_visit_;
  FedAhead found_;
};

}  // namespace

FedAhead FindFedAhead(const Graph& graph, const NameTable& marks,
                      const RunRequest& run, ConstructNodes* construct_nodes) {
  if (run.fed().empty() || marks.clones.empty()) return {};
  return Spread(graph, marks, run, construct_nodes).Run();
}

}  // namespace staging
}  // namespace tensorflow
