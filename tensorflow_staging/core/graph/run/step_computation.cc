// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/step_computation.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_edits.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/not_carried.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

Status DoesNotFit(const Node& from, const Node& to) {
  return errors::InvalidArgument(
      "SmartStage's attributes of node '", from.name(), "' (",
      DataTypeVectorString(from.output_types()), ") lead to node '", to.name(),
      "' (", DataTypeVectorString(to.output_types()),
      "), which has other types.");
}

// Lets `to` have the name and the successors of `from`, a stand-in, and removes
// `from`.
Status Replace(Node* from, Node* to, Graph* graph) {
  if (from->output_types() != to->output_types()) return DoesNotFit(*from, *to);
  MoveUsers(from, to, graph);
  graph->RemoveNode(from);
  return OkStatus();
}

// Adds a node that computes nothing, for a run that feeds it or waits for it.
Status AddPlace(const std::string& name, const std::string& stage,
                const Node& original, Graph* graph, Node** place) {
  TF_RETURN_IF_ERROR(NodeBuilder(name, kStagedNodeOp)
                         .Input(std::vector<NodeBuilder::NodeOut>())
                         .Attr(kDtypesAttr, original.output_types())
                         .Attr(kIndicesAttr, std::vector<int>())
                         .Attr(kStageNameAttr, stage)
                         .Attr(kStandsForAttr, name)
                         .Device(original.assigned_device_name())
                         .Finalize(graph, place));
  (*place)->set_assigned_device_name(original.assigned_device_name());
  return OkStatus();
}

Status SkippedElementsError(const std::string& stage,
                            const std::set<std::string>& sources,
                            const std::set<std::string>& needed) {
  std::vector<std::string> skipped;
  for (const std::string& source : sources) {
    if (needed.count(source) == 0) skipped.push_back(source);
  }
  return errors::FailedPrecondition(
      "The run needs the next element of '", absl::StrJoin(needed, "', '"),
      "', but not of '", absl::StrJoin(skipped, "', '"),
      "'. A record of stage '", stage,
      "' holds an element of each, so that the run would skip an element. Let "
      "the run also use the other sources, as a step does.");
}

// Gives `node`, a copy of `clone` with the original name, the original name of
// the frame that it enters, if any. The clone's has the same prefix as the
// clone.
void RestoreFrameName(const Node& clone, Node* node) {
  std::string frame;
  if (!node->IsEnter() ||
      !TryGetNodeAttr(node->attrs(), kFrameNameAttr, &frame)) {
    return;
  }
  absl::string_view scope = clone.name();
  absl::string_view original = frame;
  if (absl::ConsumeSuffix(&scope, node->name()) &&
      absl::ConsumePrefix(&original, scope)) {
    node->ClearAttr(kFrameNameAttr);
    node->AddAttr(kFrameNameAttr, std::string(original));
  }
}

// Whether a clone leads to the Put of a manual stage.
bool IsOfManualRegion(const MarkedClone& clone) {
  return absl::StartsWith(
      clone.node->name(),
      absl::StrCat(clone.mark.stage, "/", kManualRegionScope, "/"));
}

// The names of the stand-ins of the sources on which a clone depends, itself
// included.
std::set<std::string> SourcesBehind(const std::string& name,
                                    const NameTable& marks) {
  std::set<std::string> sources;
  std::set<std::string> seen = {name};
  std::vector<std::string> to_visit = {name};
  while (!to_visit.empty()) {
    const std::string next = to_visit.back();
    to_visit.pop_back();
    const MarkedClone* clone = marks.FindClone(next);
    if (clone == nullptr) {
      // The Take of a manual stage, in a stage that is chained after it.
      if (marks.FindPass(next) != nullptr) sources.insert(next);
      continue;
    }
    if (IsSourceOp(*clone->node)) sources.insert(next);
    if (!clone->mark.taken_inputs.empty()) {
      const std::string* take = marks.FindTakeStandIn(clone->mark.stage);
      if (take != nullptr) sources.insert(*take);
    }
    for (const Edge* edge : clone->node->in_edges()) {
      const auto original = marks.OriginalOf(*edge->src());
      if (original && seen.insert(*original).second) {
        to_visit.push_back(*original);
      }
    }
  }
  return sources;
}

absl::flat_hash_map<std::string, Node*> NodesByName(
    const absl::flat_hash_set<std::string>& names, const Graph& graph) {
  absl::flat_hash_map<std::string, Node*> nodes;
  if (names.empty()) return nodes;
  for (Node* node : graph.op_nodes()) {
    if (names.contains(node->name())) nodes.emplace(node->name(), node);
  }
  return nodes;
}

// The nodes of which the clones use copies on the CPU, by name. A run may feed
// the originals.
absl::flat_hash_map<std::string, Node*> OriginalsOfCopies(const Graph& graph) {
  absl::flat_hash_set<std::string> names;
  for (const Node* node : graph.op_nodes()) {
    if (auto original = CopiedNode(*node)) names.insert(*std::move(original));
  }
  return NodesByName(names, graph);
}

// Returns the node of which `node` is a copy on the CPU, or `node`.
Node* OriginalOfCopy(Node* node,
                     const absl::flat_hash_map<std::string, Node*>& originals) {
  const std::optional<std::string> name = CopiedNode(*node);
  if (!name) return node;
  const auto it = originals.find(*name);
  return it == originals.end() ? node : it->second;
}

}  // namespace

StepComputation::StepComputation(const Graph& graph, const NodeFinder& find,
                                 const NameTable& marks, const RunRequest& run)
    : find_(find),
      marks_(marks),
      run_(run),
      construct_nodes_(graph),
      fed_ahead_(FindFedAhead(graph, marks, run, &construct_nodes_)),
      roles_(graph) {
  for (const auto& [name, clone] : marks.clones) {
    if (IsSourceOp(*clone.node)) sources_[clone.mark.stage].insert(name);
  }
  for (const auto& [stage, name] : marks.take_stand_ins) {
    // A record of a manual stage depends on all its sources.
    if (sources_[stage].empty()) sources_[stage].insert(name);
  }
  for (const auto& [name, stand_in] : marks.stand_ins) {
    for (const Edge* edge : stand_in.node->in_edges()) {
      if (IsStandIn(*edge->src())) continue;
      const Node* take = TakenTensorOf(*edge).node;
      if (IsBufferTake(*take)) takes_[take] = stand_in.stage;
    }
  }
}

std::set<std::string> StepComputation::JoinsOfSmartStage() const {
  std::set<std::string> joins;
  for (const auto& [stage, sources] : sources_) {
    if (sources.size() > 1) joins.insert(stage);
  }
  if (joins.empty()) return joins;
  for (const auto& [name, clone] : marks_.clones) {
    if (IsOfManualRegion(clone)) joins.erase(clone.mark.stage);
  }
  for (const auto& [name, pass] : marks_.passes) {
    joins.erase(pass.mark.stage);
    joins.erase(*pass.mark.passes_on);
  }
  return joins;
}

std::set<std::string> StepComputation::PartlyNeeded() const {
  const std::set<std::string> taken = StagesTakenDirectly();
  std::set<std::string> partly;
  for (const std::string& stage : beside_) {
    if (taken.count(stage) > 0) continue;
    const std::set<std::string>& sources = sources_.at(stage);
    const size_t needed =
        absl::c_count_if(sources, [this](const std::string& source) {
          // With another handle, it reads something else.
          return computed_.count(source) > 0 &&
                 !fed_ahead_.nodes.contains(source);
        });
    if (needed > 0 && needed < sources.size()) partly.insert(stage);
  }
  return partly;
}

bool StepComputation::IsBesideStage(const std::string& name) const {
  if (beside_.empty()) return false;
  const MarkedClone* clone = marks_.FindClone(name);
  return clone != nullptr && beside_.count(clone->mark.stage) > 0;
}

Status StepComputation::Find() {
  // What the run would read without these stages says whether it can use their
  // records.
  beside_ = JoinsOfSmartStage();
  if (!beside_.empty()) {
    TF_RETURN_IF_ERROR(FindNodes());
    beside_ = PartlyNeeded();
  }
  TF_RETURN_IF_ERROR(FindNodes());
  TF_RETURN_IF_ERROR(CheckNothingIsDrawnTwice());
  return CheckSourcesAdvanceTogether();
}

Status StepComputation::FindNodes() {
  needed_.clear();
  computed_.clear();
  drawn_.clear();
  fed_originals_.clear();
  awaited_.clear();
  for (const TensorId& tensor : run_.wanted()) {
    TF_RETURN_IF_ERROR(Visit(tensor.ToString(), NeedWanted(tensor)));
  }
  for (absl::string_view target : run_.targets()) {
    TF_RETURN_IF_ERROR(
        Visit(std::string(target), NeedTarget(std::string(target))));
  }
  for (const TensorId& tensor : run_.fed()) {
    const std::string name(tensor.node());
    const MarkedStandIn* stand_in = marks_.FindStandIn(name);
    const bool may_go = stand_in == nullptr
                            ? marks_.FindClone(name) != nullptr
                            : fed_ahead_.stages.count(stand_in->stage) > 0;
    if (may_go && computed_.count(name) == 0 &&
        (stand_in == nullptr || !needed_.contains(stand_in->node))) {
      fed_originals_.insert(name);
    }
  }
  return OkStatus();
}

const Node* StepComputation::Available(const std::string& name,
                                       int output) const {
  if (!marks_.IsCarried(name, output) || fed_ahead_.nodes.contains(name) ||
      IsBesideStage(name)) {
    return nullptr;
  }
  return marks_.FindStandIn(name)->node;
}

Status StepComputation::Visit(const std::string& wanted, Status status) {
  while (status.ok() && !to_visit_.empty()) {
    const Item item = std::move(to_visit_.back());
    to_visit_.pop_back();
    status = item.node != nullptr ? NeedInputsOf(*item.node)
                                  : NeedInputsOfComputed(item.compute);
  }
  if (status.ok()) return status;
  return errors::CreateWithUpdatedMessage(
      status,
      absl::StrCat(status.message(), " The run needs it for '", wanted, "'."));
}

Status StepComputation::NeedWanted(const TensorId& tensor) {
  const std::string name(tensor.node());
  if (marks_.IsMarked(name)) return NeedTensor(name, tensor.index());
  if (const Node* node = find_(name)) NeedNode(*node);
  return OkStatus();
}

Status StepComputation::NeedTarget(const std::string& name) {
  if (!marks_.IsMarked(name)) {
    if (const Node* node = find_(name)) NeedNode(*node);
    return OkStatus();
  }
  TF_RETURN_IF_ERROR(NeedControl(name));
  if (marks_.FindStandIn(name) == nullptr && computed_.count(name) == 0) {
    awaited_.insert(name);
  }
  return OkStatus();
}

void StepComputation::NeedNode(const Node& node) {
  if (node.IsOp() && needed_.insert(&node).second) {
    to_visit_.push_back({&node, ""});
  }
}

Status StepComputation::NeedInputsOf(const Node& node) {
  for (const Edge* edge : node.in_edges()) {
    const Node& input = *edge->src();
    const MarkedStandIn* stand_in = marks_.FindStandIn(input.name());
    if (stand_in == nullptr || stand_in->node != &input) {
      if (edge->IsControlEdge() ||
          run_.FindFed(input.name(), edge->src_output()) == nullptr) {
        NeedNode(input);
      }
      continue;
    }
    TF_RETURN_IF_ERROR(edge->IsControlEdge()
                           ? NeedControl(input.name())
                           : NeedTensor(input.name(), edge->src_output()));
  }
  return OkStatus();
}

Status StepComputation::NeedInputsOfComputed(const std::string& name) {
  const MarkedClone& clone = *marks_.FindClone(name);
  for (const TakenInput& taken : clone.mark.taken_inputs) {
    const std::string* take = marks_.FindTakeStandIn(clone.mark.stage);
    if (take == nullptr) continue;
    TF_RETURN_IF_ERROR(taken.input == Graph::kControlSlot
                           ? NeedControl(*take)
                           : NeedTensor(*take, taken.take_output));
  }
  for (const Edge* edge : clone.node->in_edges()) {
    Node* input = edge->src();
    if (!input->IsOp() || IsTakenInput(clone.mark, *edge)) {
      continue;
    }
    if (const auto original = marks_.OriginalOf(*input)) {
      if (!edge->IsControlEdge()) {
        TF_RETURN_IF_ERROR(NeedTensor(*original, edge->src_output()));
      } else if (marks_.lowered.contains(input) ||
                 construct_nodes_.IsChoice(*edge)) {
        TF_RETURN_IF_ERROR(Compute(*original, 0));
      } else {
        TF_RETURN_IF_ERROR(NeedControl(*original));
      }
      continue;
    }
    const std::optional<std::string> copied = CopiedNode(*input);
    if (edge->IsControlEdge() || run_.FindFed(copied ? *copied : input->name(),
                                              edge->src_output()) == nullptr) {
      NeedNode(*input);
    }
  }
  return OkStatus();
}

Status StepComputation::NeedTensor(const std::string& name, int output) {
  if (run_.FindFed(name, output) != nullptr) return OkStatus();
  if (const Node* stand_in = Available(name, output)) {
    NeedNode(*stand_in);
    return OkStatus();
  }
  return Compute(name, output);
}

bool StepComputation::WaitsForFed(const std::string& name) {
  const MarkedClone* clone = marks_.FindClone(name);
  return clone != nullptr && fed_ahead_.waiting.contains(name) &&
         roles_.IsRepeatable(*clone->node);
}

Status StepComputation::NeedControl(const std::string& name) {
  if (fed_ahead_.nodes.contains(name) || WaitsForFed(name) ||
      IsBesideStage(name)) {
    return Compute(name, 0);
  }
  if (const MarkedStandIn* stand_in = marks_.FindStandIn(name)) {
    NeedNode(*stand_in->node);
    return OkStatus();
  }
  // The node has run if the record is there.
  for (const std::string& source : SourcesBehind(name, marks_)) {
    if (const MarkedStandIn* found = marks_.FindStandIn(source)) {
      NeedNode(*found->node);
    }
  }
  return OkStatus();
}

Status StepComputation::Compute(const std::string& name, int output) {
  const MarkedClone* clone = marks_.FindClone(name);
  const MarkedStandIn* stand_in = marks_.FindStandIn(name);
  if (clone == nullptr && stand_in == nullptr) {
    return errors::InvalidArgument(
        "SmartStage's attributes name '", name,
        "' as the original of a node that passes it on, but no node computes it "
        "or stands in for it.");
  }
  const std::string& stage =
      clone != nullptr ? clone->mark.stage : stand_in->stage;
  if (clone == nullptr) return UnavailableError(name, output, stage);
  if (!roles_.IsRepeatable(*clone->node)) {
    const bool may_run =
        beside_.count(stage) > 0 ||
        (IsSourceOp(*clone->node) ? fed_ahead_.nodes.contains(name)
                                  : fed_ahead_.stages.count(stage) > 0);
    if (!may_run) return UnavailableError(name, output, stage);
    drawn_.emplace(stage, std::make_pair(name, output));
  }
  if (computed_.insert(name).second) to_visit_.push_back({nullptr, name});
  return OkStatus();
}

Status StepComputation::UnavailableError(const std::string& name, int output,
                                         const std::string& stage) const {
  const auto fed = fed_ahead_.stages.find(stage);
  if (fed == fed_ahead_.stages.end()) {
    return NotCarriedError(name, output, stage);
  }
  // What it depends on, or else what else of the stage depends on a fed tensor.
  const auto cause = fed_ahead_.nodes.find(name);
  const TensorId& tensor =
      cause == fed_ahead_.nodes.end() ? fed->second : cause->second;
  return errors::InvalidArgument(
      "Tensor '", tensor.ToString(),
      "' is fed, but nodes that depend on it are computed ahead of the step, "
      "in stage '",
      stage, "', and the step also needs '", name, ":", output,
      "', which the records do not carry and which it cannot compute again. "
      "Feed everything that the step needs of the stage, as what tf.staged has "
      "returned, or, if SmartStage has found the stage, call "
      "tf.train.mark_target_node([x]) with the fed tensor before the session "
      "is created, which keeps the nodes that depend on it in the step.");
}

std::set<std::string> StepComputation::StagesTakenDirectly() const {
  std::set<std::string> stages;
  const auto add = [&](const Node* take) {
    const auto it = takes_.find(take);
    if (it != takes_.end()) stages.insert(it->second);
  };
  for (const std::string& name : run_.WantedNames()) add(find_(name));
  for (const Node* node : needed_) {
    if (IsStandIn(*node)) continue;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() ||
          run_.FindFed(edge->src()->name(), edge->src_output()) == nullptr) {
        add(edge->src());
      }
    }
  }
  return stages;
}

// A run that takes a record must use what was drawn for it. A run that feeds
// all that it needs of the record may draw.
Status StepComputation::CheckNothingIsDrawnTwice() const {
  std::set<std::string> taken = StagesTakenDirectly();
  for (const auto& [name, stand_in] : marks_.stand_ins) {
    if (needed_.contains(stand_in.node)) taken.insert(stand_in.stage);
  }
  for (const auto& [stage, tensor] : drawn_) {
    if (taken.count(stage) > 0) {
      return UnavailableError(tensor.first, tensor.second, stage);
    }
  }
  return OkStatus();
}

Status StepComputation::CheckSourcesAdvanceTogether() const {
  // The stage before each stage that passes on some of its records.
  std::map<std::string, std::string> stage_before;
  for (const auto& [name, pass] : marks_.passes) {
    stage_before[pass.mark.stage] = *pass.mark.passes_on;
  }
  // The sources that the run needs, by stage. All of them if the run needs any
  // other tensor of the record, since that depends on all.
  std::map<std::string, std::set<std::string>> needed;
  for (const std::string& stage : StagesTakenDirectly()) {
    const auto it = sources_.find(stage);
    if (it != sources_.end()) needed[stage] = it->second;
  }
  for (const auto& [name, stand_in] : marks_.stand_ins) {
    if (!needed_.contains(stand_in.node)) continue;
    const MarkedClone* pass = marks_.FindPass(name);
    const std::string& stage =
        pass == nullptr ? stand_in.stage : *pass->mark.passes_on;
    const auto it = sources_.find(stage);
    if (it == sources_.end()) continue;
    if (it->second.count(name) > 0) {
      needed[stage].insert(name);
      continue;
    }
    needed[stage] = it->second;
    const auto before = stage_before.find(stage);
    if (before == stage_before.end()) continue;
    const auto sources_before = sources_.find(before->second);
    if (sources_before != sources_.end()) {
      needed[before->second] = sources_before->second;
    }
  }
  for (const auto& [stage, some] : needed) {
    const std::set<std::string>& all = sources_.at(stage);
    if (some.size() < all.size()) {
      return SkippedElementsError(stage, all, some);
    }
  }
  return OkStatus();
}

Status StepComputation::AddTo(const NameTable& marks, Graph* copy) const {
  const Originals originals = OriginalsOfCopies(*copy);
  Added added;
  TF_RETURN_IF_ERROR(AddNodes(marks, copy, &added));
  TF_RETURN_IF_ERROR(Connect(marks, originals, added, copy));
  for (const auto& [name, node] : added) {
    if (const MarkedStandIn* stand_in = marks.FindStandIn(name)) {
      TF_RETURN_IF_ERROR(Replace(stand_in->node, node, copy));
    }
  }
  return OkStatus();
}

Status StepComputation::AddNodes(const NameTable& marks, Graph* copy,
                                 Added* added) const {
  for (const std::string& name : computed_) {
    Node* clone = marks.FindClone(name)->node;
    Node* node = copy->CopyNode(clone);
    node->set_name(name == clone->name() ? absl::StrCat(name, "/step") : name);
    for (const char* attr : {kMarkedStageAttr, kOriginalAttr, kTakenInputsAttr,
                             kStreamAttr, kColocationAttrName}) {
      node->ClearAttr(attr);
    }
    RestoreFrameName(*marks.FindClone(name)->node, node);
    (*added)[name] = node;
  }
  std::set<std::string> places = fed_originals_;
  places.insert(awaited_.begin(), awaited_.end());
  for (const std::string& name : places) {
    const MarkedClone* clone = marks.FindClone(name);
    const MarkedStandIn* stand_in = marks.FindStandIn(name);
    TF_RETURN_IF_ERROR(
        AddPlace(name, clone != nullptr ? clone->mark.stage : stand_in->stage,
                 clone != nullptr ? *clone->node : *stand_in->node, copy,
                 &(*added)[name]));
  }
  return OkStatus();
}

Status StepComputation::Connect(const NameTable& marks,
                                const Originals& originals, const Added& added,
                                Graph* copy) const {
  const auto find = [&](const std::string& name) -> Node* {
    const auto it = added.find(name);
    if (it != added.end()) return it->second;
    const MarkedStandIn* stand_in = marks.FindStandIn(name);
    return stand_in == nullptr ? nullptr : stand_in->node;
  };
  const auto connect = [&](Node* from, int output, Node* to, int input) {
    if (input == Graph::kControlSlot) {
      copy->AddControlEdge(from, to);
      return OkStatus();
    }
    if (output < 0 || output >= from->num_outputs() ||
        from->output_type(output) != to->input_type(input)) {
      return DoesNotFit(*to, *from);
    }
    copy->AddEdge(from, output, to, input);
    return OkStatus();
  };
  const auto wait_for_sources = [&](const std::string& name, Node* node) {
    for (const std::string& source : SourcesBehind(name, marks)) {
      if (Node* from = find(source)) copy->AddControlEdge(from, node);
    }
  };
  for (const std::string& name : awaited_) {
    wait_for_sources(name, added.at(name));
  }
  for (const std::string& name : computed_) {
    const MarkedClone& clone = *marks.FindClone(name);
    Node* node = added.at(name);
    for (const TakenInput& taken : clone.mark.taken_inputs) {
      const std::string* take = marks.FindTakeStandIn(clone.mark.stage);
      if (take == nullptr) return DoesNotFit(*clone.node, *node);
      TF_RETURN_IF_ERROR(
          connect(find(*take), taken.take_output, node, taken.input));
    }
    for (const Edge* edge : clone.node->in_edges()) {
      Node* input = edge->src();
      if (!input->IsOp() || IsTakenInput(clone.mark, *edge)) {
        continue;
      }
      const auto original = marks.OriginalOf(*input);
      if (!original) {
        TF_RETURN_IF_ERROR(connect(OriginalOfCopy(input, originals),
                                   edge->src_output(), node,
                                   edge->dst_input()));
        continue;
      }
      if (Node* from = find(*original)) {
        TF_RETURN_IF_ERROR(
            connect(from, edge->src_output(), node, edge->dst_input()));
        continue;
      }
      wait_for_sources(*original, node);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
