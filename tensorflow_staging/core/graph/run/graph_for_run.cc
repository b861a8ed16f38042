// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/graph_for_run.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/run/construct_nodes.h"
#include "tensorflow_staging/core/graph/run/fed_records.h"
#include "tensorflow_staging/core/graph/run/fed_takes.h"
#include "tensorflow_staging/core/graph/run/name_table.h"
#include "tensorflow_staging/core/graph/run/run_request.h"
#include "tensorflow_staging/core/graph/run/step_computation.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns whether `graph` is that of a session, and was searched for stages or
// has one. With place_pruned_graph, each run has a graph of its own, which is
// finished already.
bool HasStages(const Graph& graph) {
  bool found = false;
  // The last nodes come first: the list of the runners is one of them.
  for (int id = graph.num_node_ids() - 1; id >= 0; --id) {
    const Node* node = graph.FindNodeId(id);
    if (node == nullptr || !node->IsOp()) continue;
    if (node->IsArg() || node->IsRetval()) return false;
    found = found || IsBufferOp(*node) || node->name() == kRunnersNode;
  }
  return found;
}

// Returns whether a run concerns no record: it names only nodes of the graph,
// and needs no stand-in. A staged run is such a run, and so is that of a
// control op or of an initialiser.
bool ConcernsNoRecord(const RunRequest& run, const NodeFinder& find,
                      const std::vector<const Node*>& needed) {
  const std::set<std::string> names = run.Names();
  return absl::c_all_of(names,
                        [&](const std::string& name) { return find(name); }) &&
         absl::c_none_of(needed,
                         [](const Node* node) { return IsStandIn(*node); });
}

// Returns the nodes that a run may need, given those that it needs: also those
// that it names to feed them, and all nodes that lead to them.
std::vector<const Node*> ReachableNodes(const RunRequest& run,
                                        const NodeFinder& find,
                                        std::vector<const Node*> needed) {
  if (run.fed().empty()) return needed;
  for (const std::string& name : run.FedNames()) {
    if (const Node* node = find(name)) needed.push_back(node);
  }
  return WithAncestors(needed);
}

// Whether Grappler would leave a graph that consists of `nodes` as it is, for
// it has fewer than RewriterConfig.min_graph_nodes, and with it a function call
// that it inlines in a larger graph.
bool LosesInlining(const std::vector<const Node*>& nodes) {
  constexpr size_t kMinGraphNodes = 4;
  return nodes.size() < kMinGraphNodes &&
         absl::c_any_of(
             nodes, [](const Node* node) { return node->IsFunctionCall(); });
}

// Copies `nodes` of `graph`, with the edges between them.
std::unique_ptr<Graph> CopyNodes(std::vector<const Node*> nodes,
                                 const Graph& graph) {
  // In the order in which a copy of the whole graph has them.
  nodes = InGraphOrder(nodes);
  auto copy = std::make_unique<Graph>(graph.flib_def());
  copy->SetConstructionContext(graph.GetConstructionContextInternal());
  copy->set_versions(graph.versions());
  absl::flat_hash_map<const Node*, Node*> copy_of;
  copy_of.reserve(nodes.size());
  for (const Node* node : nodes) copy_of[node] = copy->CopyNode(node);
  for (const Node* node : nodes) {
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      copy->AddEdge(copy_of[edge->src()], edge->src_output(), copy_of[node],
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
  const NodeFinder find = run.FindNodes(graph);
  std::vector<const Node*> needed = run.NeededNodes(find);
  // Reading the marks takes a while in a large graph.
  const bool concerns_no_record = ConcernsNoRecord(run, find, needed);
  NameTable marks;
  if (!concerns_no_record || FeedsAndTakes(run, needed)) {
    TF_RETURN_IF_ERROR(ReadMarks(graph, &marks));
  }
  StepComputation computation(graph, find, marks, run);
  if (!concerns_no_record) TF_RETURN_IF_ERROR(computation.Find());
  const auto check_records = [&](const std::vector<const Node*>& executed) {
    if (!FeedsAndTakes(run, executed)) return OkStatus();
    ConstructNodes construct_nodes(graph);
    return CheckRecordsAreNotFed(graph, marks, run, executed, &construct_nodes);
  };
  if (computation.empty() && !HasFedStandIn(run, needed)) {
    TF_RETURN_IF_ERROR(check_records(needed));
    std::vector<const Node*> nodes =
        ReachableNodes(run, find, std::move(needed));
    // Otherwise, copying the nodes would save less than it costs.
    if (nodes.size() < 0.9 * graph.num_op_nodes() && !LosesInlining(nodes)) {
      *run_graph = CopyNodes(std::move(nodes), graph);
    }
    return OkStatus();
  }
  auto copy = std::make_unique<Graph>(graph.flib_def());
  CopyGraph(graph, copy.get());
  TF_RETURN_IF_ERROR(SeparateFedTakes(run, copy.get()));
  NameTable marks_of_copy;
  TF_RETURN_IF_ERROR(ReadMarks(*copy, &marks_of_copy));
  TF_RETURN_IF_ERROR(computation.AddTo(marks_of_copy, copy.get()));
  // An optimizer could make the run wait for a node that it does not need.
  const NodeFinder find_copy = run.FindNodes(*copy);
  std::vector<const Node*> nodes = run.NeededNodes(find_copy);
  TF_RETURN_IF_ERROR(check_records(nodes));
  nodes = ReachableNodes(run, find_copy, std::move(nodes));
  PruneForReverseReachability(copy.get(), {nodes.begin(), nodes.end()});
  FixupSourceAndSinkEdges(copy.get());
  *run_graph = std::move(copy);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
