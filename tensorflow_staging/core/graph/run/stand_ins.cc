// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/stand_ins.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/not_carried.h"
#include "tensorflow_staging/core/graph/partition/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

// On stand-ins and clones: the name of the stage.
constexpr char kStageAttr[] = "_staging_stage";
// On stand-ins: the outputs that other nodes use ahead.
constexpr char kUsedAheadAttr[] = "_staging_used_ahead";
// On clones: the name of the node that they are a clone of.
constexpr char kOriginalAttr[] = "_staging_original";
// On clones: which inputs the Take of tf.staged gave to the original, as pairs
// of an input and an output of the Take.
constexpr char kTakenInputsAttr[] = "_staging_taken_inputs";
// On copies for the CPU: the name of the node that they are a copy of.
constexpr char kCopyOfAttr[] = "_staging_copy_of";

using TensorNames = absl::flat_hash_set<TensorId, TensorId::Hasher>;

TensorNames FedTensors(const CallableOptions& run) {
  TensorNames fed;
  for (const std::string& feed : run.feed()) fed.insert(ParseTensorName(feed));
  for (const TensorConnection& connection : run.tensor_connection()) {
    fed.insert(ParseTensorName(connection.to_tensor()));
  }
  return fed;
}

// The stages that have to run in the step, each with a fed tensor that makes
// it necessary.
std::map<std::string, TensorId> StagesToUndo(const Graph& graph,
                                             const TensorNames& fed) {
  absl::flat_hash_set<absl::string_view> fed_nodes;
  for (const TensorId& tensor : fed) fed_nodes.insert(tensor.node());
  std::map<std::string, TensorId> stages;
  for (const Node* node : graph.op_nodes()) {
    std::vector<int> used_ahead;
    if (!fed_nodes.contains(node->name()) ||
        !TryGetNodeAttr(node->attrs(), kUsedAheadAttr, &used_ahead)) {
      continue;
    }
    for (int output : used_ahead) {
      const auto it = fed.find(TensorId(node->name(), output));
      if (it == fed.end()) continue;
      std::string stage;
      TF_CHECK_OK(GetNodeAttr(node->attrs(), kStageAttr, &stage));
      stages.emplace(stage, *it);
    }
  }
  return stages;
}

void MoveOutEdges(Node* from, Node* to, Graph* graph) {
  const std::vector<const Edge*> edges(from->out_edges().begin(),
                                       from->out_edges().end());
  for (const Edge* edge : edges) {
    const int output = edge->src_output();
    Node* const consumer = edge->dst();
    const int input = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(to, output, consumer, input);
  }
}

// Has the clones of a stage of tf.staged read the stand-in of its Take again,
// where they read what was put.
void TakeInStep(Node& take,
                const absl::flat_hash_map<std::string, Node*>& clones,
                Graph* graph) {
  std::string stage;
  TF_CHECK_OK(GetNodeAttr(take.attrs(), kStageAttr, &stage));
  for (const auto& [original, clone] : clones) {
    std::string clone_stage;
    std::vector<int> taken;
    if (!TryGetNodeAttr(clone->attrs(), kStageAttr, &clone_stage) ||
        clone_stage != stage ||
        !TryGetNodeAttr(clone->attrs(), kTakenInputsAttr, &taken)) {
      continue;
    }
    for (size_t i = 0; i + 1 < taken.size(); i += 2) {
      if (taken[i] != Graph::kControlSlot) {
        const Edge* edge = nullptr;
        TF_CHECK_OK(clone->input_edge(taken[i], &edge));
        graph->RemoveEdge(edge);
      }
      graph->AddEdge(&take, taken[i + 1], clone, taken[i]);
    }
  }
}

// Has what reads a copy for the CPU read the original again, which may be fed.
void ReadOriginalsOfCopies(Graph* graph) {
  absl::flat_hash_map<std::string, Node*> copies;
  for (Node* node : graph->op_nodes()) {
    std::string original;
    if (TryGetNodeAttr(node->attrs(), kCopyOfAttr, &original)) {
      copies.emplace(original, node);
    }
  }
  if (copies.empty()) return;
  for (Node* node : graph->op_nodes()) {
    const auto it = copies.find(node->name());
    if (it != copies.end()) MoveOutEdges(it->second, node, graph);
  }
}

// Gives the clones of `stages` their names back, in the place of the stand-ins.
void Unstage(const std::map<std::string, TensorId>& stages, Graph* graph) {
  // Sources of one stage are cloned apart; any of the clones will do.
  absl::flat_hash_map<std::string, Node*> clones;
  std::vector<Node*> stand_ins;
  ReadOriginalsOfCopies(graph);
  for (Node* node : graph->op_nodes()) {
    std::string stage;
    if (!TryGetNodeAttr(node->attrs(), kStageAttr, &stage) ||
        stages.count(stage) == 0) {
      continue;
    }
    std::string original;
    if (TryGetNodeAttr(node->attrs(), kOriginalAttr, &original)) {
      clones.emplace(original, node);
    } else if (IsStandIn(*node)) {
      stand_ins.push_back(node);
    }
  }
  for (Node* stand_in : stand_ins) {
    const auto it = clones.find(stand_in->name());
    if (it == clones.end()) {
      TakeInStep(*stand_in, clones, graph);
      continue;
    }
    Node* clone = it->second;
    MoveOutEdges(stand_in, clone, graph);
    graph->RemoveNode(stand_in);
    clone->set_name(it->first);
  }
}

// The nodes that a run of `graph` needs.
std::vector<const Node*> NeededNodes(const Graph& graph,
                                     const CallableOptions& run,
                                     const TensorNames& fed) {
  absl::flat_hash_set<absl::string_view> wanted;
  for (const std::string& fetch : run.fetch()) {
    const TensorId tensor = ParseTensorName(fetch);
    if (!fed.contains(tensor)) wanted.insert(tensor.node());
  }
  for (const std::string& target : run.target()) wanted.insert(target);
  for (const TensorConnection& connection : run.tensor_connection()) {
    wanted.insert(ParseTensorName(connection.from_tensor()).node());
  }
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> needed;
  const auto need = [&](const Node* node) {
    if (node->IsOp() && seen.insert(node).second) needed.push_back(node);
  };
  for (const Node* node : graph.op_nodes()) {
    if (wanted.contains(node->name())) need(node);
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Edge* edge : needed[i]->in_edges()) {
      if (edge->IsControlEdge() ||
          !fed.contains(TensorId(edge->src()->name(), edge->src_output()))) {
        need(edge->src());
      }
    }
  }
  return needed;
}

// The fed tensor that is the value of `edge`; null if there is none.
const TensorId* FedValue(const Edge& edge, const TensorNames& fed) {
  if (edge.IsControlEdge()) return nullptr;
  std::string name;
  if (!TryGetNodeAttr(edge.src()->attrs(), kCopyOfAttr, &name)) {
    name = edge.src()->name();
  }
  const auto it = fed.find(TensorId(name, edge.src_output()));
  return it == fed.end() ? nullptr : &*it;
}

// A fed tensor that `clones` use, if only through nodes that both sides share;
// null if there is none. What was put where the Take of tf.staged is taken is
// another matter: that cut is the user's.
const TensorId* FedAhead(const std::vector<const Node*>& clones,
                         const TensorNames& fed) {
  absl::flat_hash_set<const Node*> seen(clones.begin(), clones.end());
  std::vector<const Node*> ahead = clones;
  for (size_t i = 0; i < ahead.size(); ++i) {
    std::vector<int> taken;
    TryGetNodeAttr(ahead[i]->attrs(), kTakenInputsAttr, &taken);
    absl::flat_hash_set<int> taken_inputs;
    for (size_t j = 0; j < taken.size(); j += 2) taken_inputs.insert(taken[j]);
    for (const Edge* edge : ahead[i]->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      if (!edge->IsControlEdge() && taken_inputs.contains(edge->dst_input())) {
        continue;
      }
      if (const TensorId* tensor = FedValue(*edge, fed)) return tensor;
      if (seen.insert(edge->src()).second) ahead.push_back(edge->src());
    }
  }
  return nullptr;
}

// Adds the stages whose records the run needs though they were computed
// without a fed value, each with the fed tensor: a constant, for example, that
// both sides share.
void AddStagesWithoutFedValues(const Graph& graph, const CallableOptions& run,
                               const TensorNames& fed,
                               std::map<std::string, TensorId>* stages) {
  std::map<std::string, std::vector<const Node*>> clones;
  for (const Node* node : NeededNodes(graph, run, fed)) {
    std::string stage;
    if (IsBufferTake(*node) &&
        TryGetNodeAttr(node->attrs(), kStageAttr, &stage) &&
        stages->count(stage) == 0) {
      clones[stage];
    }
  }
  if (clones.empty()) return;
  for (const Node* node : graph.op_nodes()) {
    std::string stage;
    if (node->attrs().Find(kOriginalAttr) == nullptr ||
        !TryGetNodeAttr(node->attrs(), kStageAttr, &stage)) {
      continue;
    }
    const auto it = clones.find(stage);
    if (it != clones.end()) it->second.push_back(node);
  }
  for (const auto& [stage, nodes] : clones) {
    if (const TensorId* tensor = FedAhead(nodes, fed)) {
      stages->emplace(stage, *tensor);
    }
  }
}

// Whether `node` is where the records of one of `stages` come from in a graph
// that is unstaged.
bool YieldsRecords(const Node& node,
                   const std::map<std::string, TensorId>& stages,
                   std::string* stage) {
  if (!TryGetNodeAttr(node.attrs(), kStageAttr, stage) ||
      stages.count(*stage) == 0) {
    return false;
  }
  return IsSourceOp(node) || IsStandIn(node);
}

// Puts nodes that do nothing in the place of the sources of `stages`, which the
// run does not need: an optimizer may have the run wait for one all the same.
Status TakeOutSources(const std::map<std::string, TensorId>& stages,
                      Graph* graph) {
  std::vector<Node*> sources;
  for (Node* node : graph->op_nodes()) {
    std::string stage;
    if (YieldsRecords(*node, stages, &stage)) sources.push_back(node);
  }
  for (Node* source : sources) {
    std::string stage;
    TF_RETURN_IF_ERROR(GetNodeAttr(source->attrs(), kStageAttr, &stage));
    Node* empty = nullptr;
    TF_RETURN_IF_ERROR(NodeBuilder(source->name(), "StagedNode")
                           .Input(std::vector<NodeBuilder::NodeOut>())
                           .Attr("dtypes", source->output_types())
                           .Attr("indices", std::vector<int>())
                           .Attr("stage", stage)
                           .Device(source->assigned_device_name())
                           .Finalize(graph, &empty));
    empty->set_assigned_device_name(source->assigned_device_name());
    MoveOutEdges(source, empty, graph);
    graph->RemoveNode(source);
  }
  return OkStatus();
}

// Refuses a run that feeds a part of what it needs of `stages`, which are
// undone in `graph`, and needs their records for the rest.
Status CheckRecordsNotNeeded(const Graph& graph, const CallableOptions& run,
                             const TensorNames& fed,
                             const std::map<std::string, TensorId>& stages) {
  for (const Node* node : NeededNodes(graph, run, fed)) {
    std::string stage;
    if (!YieldsRecords(*node, stages, &stage)) continue;
    return errors::InvalidArgument(
        "Tensor '", stages.at(stage).ToString(),
        "' is fed, but what depends on it is computed ahead of the step, in "
        "stage '",
        stage, "', and the step also needs the stage's records, by '",
        node->name(),
        "'. Feed all that the step needs of the stage, or call "
        "tf.train.mark_target_node([x]) with the fed tensor before the session "
        "is created, which keeps what depends on it in the step.");
  }
  return OkStatus();
}

// The Begins that the run reaches though it puts nothing into their buffers: it
// is none of the stage's runs, and must not wait as if it were.
std::vector<Node*> BeginsWithoutPut(const Graph& graph,
                                    const CallableOptions& run,
                                    const TensorNames& fed) {
  const auto is_begin = [](const Node* node) {
    return node->type_string() == "TensorBufferBegin";
  };
  const auto nodes = graph.op_nodes();
  if (std::none_of(nodes.begin(), nodes.end(), is_begin)) return {};
  const auto buffer = [](const Node& node) {
    std::pair<std::string, std::string> key;
    TryGetNodeAttr(node.attrs(), "container", &key.first);
    TryGetNodeAttr(node.attrs(), "shared_name", &key.second);
    return key;
  };
  const std::vector<const Node*> needed = NeededNodes(graph, run, fed);
  std::set<std::pair<std::string, std::string>> put_into;
  for (const Node* node : needed) {
    if (IsBufferPut(*node)) put_into.insert(buffer(*node));
  }
  std::vector<Node*> begins;
  for (const Node* node : needed) {
    if (is_begin(node) && put_into.count(buffer(*node)) == 0) {
      begins.push_back(graph.FindNodeId(node->id()));
    }
  }
  return begins;
}

// Refuses a run that fetches what no record carries before it takes one.
Status CheckFetches(const Graph& graph, const CallableOptions& run) {
  TensorNames fetched;
  absl::flat_hash_set<absl::string_view> nodes;
  for (const std::string& fetch : run.fetch()) {
    const TensorId tensor = ParseTensorName(fetch);
    fetched.insert(tensor);
    nodes.insert(tensor.node());
  }
  for (const Node* node : graph.op_nodes()) {
    std::vector<int> carried;
    if (node->type_string() != "StagedNode" || !nodes.contains(node->name()) ||
        !TryGetNodeAttr(node->attrs(), "indices", &carried)) {
      continue;
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (fetched.contains(TensorId(node->name(), i)) &&
          std::find(carried.begin(), carried.end(), i) == carried.end()) {
        std::string stage;
        TF_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "stage", &stage));
        return NotCarriedError(node->name(), i, stage);
      }
    }
  }
  return OkStatus();
}

}  // namespace

void MarkStandIn(const std::string& stage, const std::vector<int>& used_ahead,
                 Node* node) {
  node->AddAttr(kStageAttr, stage);
  node->AddAttr(kUsedAheadAttr, used_ahead);
}

bool IsStandIn(const Node& node) {
  return node.attrs().Find(kUsedAheadAttr) != nullptr;
}

void MarkClone(const std::string& stage, const std::string& original,
               const std::vector<int>& taken_inputs, Node* node) {
  node->AddAttr(kStageAttr, stage);
  node->AddAttr(kOriginalAttr, original);
  if (!taken_inputs.empty()) node->AddAttr(kTakenInputsAttr, taken_inputs);
}

void MarkCopy(const std::string& original, Node* node) {
  node->AddAttr(kCopyOfAttr, original);
}

void MarkTake(const std::string& stage, Node* node) {
  node->AddAttr(kStageAttr, stage);
}

Status UnstageForRun(const Graph& graph, const CallableOptions& run,
                     std::unique_ptr<Graph>* unstaged) {
  unstaged->reset();
  const TensorNames fed = FedTensors(run);
  std::map<std::string, TensorId> stages = StagesToUndo(graph, fed);
  if (!fed.empty()) AddStagesWithoutFedValues(graph, run, fed, &stages);
  if (stages.empty()) {
    TF_RETURN_IF_ERROR(CheckFetches(graph, run));
    if (BeginsWithoutPut(graph, run, fed).empty()) return OkStatus();
  }

  auto copy = std::make_unique<Graph>(graph.flib_def());
  CopyGraph(graph, copy.get());
  if (!stages.empty()) {
    Unstage(stages, copy.get());
    TF_RETURN_IF_ERROR(CheckRecordsNotNeeded(*copy, run, fed, stages));
    TF_RETURN_IF_ERROR(CheckFetches(*copy, run));
    TF_RETURN_IF_ERROR(TakeOutSources(stages, copy.get()));
  }
  for (Node* begin : BeginsWithoutPut(*copy, run, fed)) copy->RemoveNode(begin);
  FixupSourceAndSinkEdges(copy.get());
  *unstaged = std::move(copy);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
