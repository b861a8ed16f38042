// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/fed_takes.h"

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsFed(const RunRequest& run, const Edge& edge) {
  return !edge.IsControlEdge() &&
         run.FindFed(edge.src()->name(), edge.src_output()) != nullptr;
}

// Whether the tensor of `edge` is fed, or comes from a fed one through nodes that
// only pass it on.
bool ComesFromFed(const RunRequest& run, const Edge* edge) {
  absl::flat_hash_set<const Node*> seen;
  while (edge != nullptr && seen.insert(edge->src()).second) {
    if (IsFed(run, *edge)) return true;
    if (!PassesOn(*edge->src())) return false;
    edge = EdgePassedOn(*edge->src(), edge->src_output());
  }
  return false;
}

std::vector<const Edge*> FedEdgesToStandIns(const RunRequest& run,
                                            const Graph& graph) {
  std::vector<const Edge*> edges;
  for (const Node* node : graph.op_nodes()) {
    if (!IsStandIn(*node)) continue;
    absl::c_copy_if(node->in_edges(), std::back_inserter(edges),
                    [&](const Edge* edge) {
                      return !edge->IsControlEdge() && ComesFromFed(run, edge);
                    });
  }
  return edges;
}

std::string FreeName(std::string name, const Graph& graph) {
  const auto is_taken = [&](const Node* node) { return node->name() == name; };
  while (absl::c_any_of(graph.op_nodes(), is_taken))
    absl::StrAppend(&name, "_");
  return name;
}

// Lets `place`, which passes on the outputs `indices` of `take`, have on the host
// what `take` has there.
void KeepHostMemory(const Node& take, const std::vector<int>& indices,
                    Node* place) {
  std::vector<int> outputs;
  if (!TryGetNodeAttr(take.attrs(), kOutputHostMemoryAttr, &outputs)) return;
  std::vector<int> inputs;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (absl::c_linear_search(outputs, indices[i])) inputs.push_back(i);
  }
  place->AddAttr(kInputHostMemoryAttr, inputs);
  place->AddAttr(kOutputHostMemoryAttr, outputs);
}

// Gives `take` another name, and its name to a node that passes on what the run
// does not feed. All users of `take` except stand-ins use that node.
Status Separate(const RunRequest& run, Node* take, Graph* graph) {
  const std::string name = take->name();
  take->set_name(FreeName(absl::StrCat(name, "/record"), *graph));
  std::vector<NodeBuilder::NodeOut> values;
  std::vector<int> indices;
  for (int i = 0; i < take->num_outputs(); ++i) {
    if (run.FindFed(name, i) != nullptr) continue;
    values.emplace_back(take, i);
    indices.push_back(i);
  }
  std::string stage;
  TF_RETURN_IF_ERROR(GetNodeAttr(take->attrs(), kSharedNameAttr, &stage));
  Node* place = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder(name, kStagedNodeOp)
                         .Input(values)
                         .Attr(kDtypesAttr, take->output_types())
                         .Attr(kIndicesAttr, indices)
                         .Attr(kStageNameAttr, stage)
                         .Attr(kStandsForAttr, name)
                         .Device(take->requested_device())
                         .Finalize(graph, &place));
  place->set_assigned_device_name(take->assigned_device_name());
  KeepHostMemory(*take, indices, place);
  const std::vector<const Edge*> edges(take->out_edges().begin(),
                                       take->out_edges().end());
  for (const Edge* edge : edges) {
    if (edge->dst()->IsOp() && edge->dst() != place &&
        !IsStandIn(*edge->dst())) {
      MoveEdge(edge, place, edge->src_output(), graph);
    }
  }
  // Who waits for the Take takes a record.
  graph->AddControlEdge(take, place);
  return OkStatus();
}

}  // namespace

bool HasFedStandIn(const RunRequest& run,
                   const std::vector<const Node*>& needed) {
  return !run.fed().empty() && absl::c_any_of(needed, [&](const Node* node) {
    return IsStandIn(*node) &&
           absl::c_any_of(node->in_edges(), [&](const Edge* edge) {
             return !edge->IsControlEdge() && ComesFromFed(run, edge);
           });
  });
}

Status SeparateFedTakes(const RunRequest& run, Graph* graph) {
  std::map<int, Node*> takes;
  for (const Edge* edge : FedEdgesToStandIns(run, *graph)) {
    const TakenTensor taken = TakenTensorOf(*edge);
    Node* const take = Mutable(taken.node, graph);
    if (!IsBufferTake(*take) || taken.output >= take->num_outputs() ||
        take->output_type(taken.output) !=
            edge->dst()->input_type(edge->dst_input())) {
      continue;
    }
    MoveEdge(edge, take, taken.output, graph);
    if (run.FindFed(take->name(), taken.output)) takes[take->id()] = take;
  }
  for (const auto& [id, take] : takes) {
    TF_RETURN_IF_ERROR(Separate(run, take, graph));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
