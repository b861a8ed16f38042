// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/graph_for_run.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/run/begins_without_put.h"
#include "tensorflow_staging/core/graph/run/marked_nodes.h"
#include "tensorflow_staging/core/graph/run/run_request.h"
#include "tensorflow_staging/core/graph/run/step_computation.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns whether `graph` is that of a session, and has a stage or was searched
// for stages. With place_pruned_graph, each run has a graph of its own, which
// is finished already.
bool HasStages(const Graph& graph) {
  bool found = false;
  for (const Node* node : graph.op_nodes()) {
    if (node->IsArg() || node->IsRetval()) return false;
    found = found || IsBufferOp(*node) || node->name() == kRunnersNode;
  }
  return found;
}

// Returns whether a run concerns no record: it feeds nothing, names only nodes
// of `graph`, and needs no stand-in. A staged run is such a run, and so is that
// of a control op or of an initialiser.
bool ConcernsNoRecord(const Graph& graph, const RunRequest& run) {
  if (!run.fed().empty()) return false;
  absl::flat_hash_set<absl::string_view> names = run.targets();
  for (const TensorId& tensor : run.wanted()) names.insert(tensor.node());
  if (run.WantedNodes(graph).size() < names.size()) return false;
  const std::vector<const Node*> needed = run.NeededNodes(graph);
  return std::none_of(needed.begin(), needed.end(),
                      [](const Node* node) { return IsStandIn(*node); });
}

// Returns the nodes that a run of `graph` may need: those that it names, also
// to feed them, and all nodes that lead to them.
std::unordered_set<const Node*> ReachableNodes(const Graph& graph,
                                               const RunRequest& run) {
  std::vector<const Node*> found = run.WantedNodes(graph);
  for (const Node* node : run.FedNodes(graph)) found.push_back(node);
  std::unordered_set<const Node*> seen(found.begin(), found.end());
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Edge* edge : found[i]->in_edges()) {
      if (edge->src()->IsOp() && seen.insert(edge->src()).second) {
        found.push_back(edge->src());
      }
    }
  }
  return seen;
}

// Copies `nodes` of `graph`, with the edges between them.
std::unique_ptr<Graph> CopyNodes(const std::unordered_set<const Node*>& nodes,
                                 const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph.flib_def());
  copy->SetConstructionContext(graph.GetConstructionContextInternal());
  copy->set_versions(graph.versions());
  std::vector<Node*> copy_of(graph.num_node_ids(), nullptr);
  for (const Node* node : graph.op_nodes()) {
    if (nodes.count(node) > 0) copy_of[node->id()] = copy->CopyNode(node);
  }
  for (const Node* node : graph.op_nodes()) {
    Node* const copied = copy_of[node->id()];
    if (copied == nullptr) continue;
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      copy->AddEdge(copy_of[edge->src()->id()], edge->src_output(), copied,
                    edge->dst_input());
    }
  }
  FixupSourceAndSinkEdges(copy.get());
  return copy;
}

}  // namespace

Status FindGraphForRun(const Graph& graph, const CallableOptions& options,
                       std::unique_ptr<Graph>* run_graph) {
  run_graph->reset();
  if (!HasStages(graph)) return OkStatus();
  const RunRequest run(options);
  MarkedNodes marks;
  // Reading the marks takes a while in a large graph.
  if (!ConcernsNoRecord(graph, run)) {
    TF_RETURN_IF_ERROR(ReadMarks(graph, &marks));
  }
  StepComputation computation(graph, marks, run);
  TF_RETURN_IF_ERROR(computation.Find());
  if (computation.empty() && BeginsWithoutPut(graph, run).empty()) {
    const auto nodes = ReachableNodes(graph, run);
    // Otherwise, copying the nodes would save less than it costs.
    if (nodes.size() < 0.9 * graph.num_op_nodes()) {
      *run_graph = CopyNodes(nodes, graph);
    }
    return OkStatus();
  }
  auto copy = std::make_unique<Graph>(graph.flib_def());
  CopyGraph(graph, copy.get());
  TF_RETURN_IF_ERROR(ReadMarks(*copy, &marks));
  TF_RETURN_IF_ERROR(computation.AddTo(marks, copy.get()));
  for (Node* begin : BeginsWithoutPut(*copy, run)) copy->RemoveNode(begin);
  // An optimizer could make the run wait for a node that it does not need.
  PruneForReverseReachability(copy.get(), ReachableNodes(*copy, run));
  FixupSourceAndSinkEdges(copy.get());
  *run_graph = std::move(copy);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
