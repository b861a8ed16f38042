// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/step_division.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/ahead/call_sites.h"
#include "tensorflow_staging/core/ahead/flat_step.h"
#include "tensorflow_staging/core/ahead/function_part.h"
#include "tensorflow_staging/core/ahead/loop_division.h"
#include "tensorflow_staging/core/ahead/same_function.h"
#include "tensorflow_staging/core/ahead/step_buffer.h"
#include "tensorflow_staging/core/ahead/xla_calls.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"
#include "tensorflow_staging/core/graph/partition/reason_text.h"
#include "tensorflow_staging/core/graph/partition/stage_partition.h"

namespace tensorflow {
namespace staging {
namespace {

// How many nodes outside to name.
constexpr size_t kMostOutside = 10;

// Loops may be nested so deep.
constexpr int kDeepestLoop = 16;

// The attributes with which XLA compiles a function.
constexpr const char* kCompiledAttrs[] = {"_XlaMustCompile", "_XlaScope",
                                          "_XlaSeparateCompiledGradients"};

// Attributes of a call that its parts do not have, or others.
constexpr const char* kOfWholeCall[] = {"f",
                                        "Tin",
                                        "Tout",
                                        "_class",
                                        "_output_shapes",
                                        "_read_only_resource_inputs"};

// The nodes of a site, divided. Its graph has two nodes for each call that was
// divided.
struct Level {
  NodeSet ahead;
  // Draws from a generator's state, which both sides repeat.
  NodeSet twice;
  // Pure nodes that both sides compute; the rest uses its own results.
  NodeSet repeated;
  NodeSet rest;
  // What both sides use, such as constants.
  NodeSet shared;
  // The outputs of nodes ahead that the rest uses.
  std::vector<NodeOutput> boundary;
  // The rests of calls.
  NodeSet called_rests;

  NodeSet AheadAndShared() const {
    NodeSet both = ahead;
    both.insert(shared.begin(), shared.end());
    return both;
  }
};

using NodeOutputs = std::map<NodeOutput, NodeOutput, NodeIdLess>;

// The tensors that the outputs of a site are.
Status OutputsOf(const CallSite& site, std::vector<NodeOutput>* outputs) {
  for (const Node* node : site.body->ret_nodes) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(node->input_edge(0, &edge));
    outputs->push_back({edge->src(), edge->src_output()});
  }
  return OkStatus();
}

// Sets `*tensor` to what `call` passes for a parameter of its function.
Status PassedBy(const Node& call, const Node& arg, NodeOutput* tensor) {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(call.input_edge(IndexOf(arg), &edge));
  *tensor = {edge->src(), edge->src_output()};
  return OkStatus();
}

// The parameters that `nodes` use, in order.
std::vector<Node*> ArgsOf(const CallSite& site, const NodeSet& nodes) {
  NodeSet used;
  for (const Node* node : nodes) {
    for (const Edge* edge : node->in_edges()) {
      if (edge->src()->IsArg()) used.insert(edge->src());
    }
  }
  std::vector<Node*> args;
  for (Node* arg : site.body->arg_nodes) {
    if (used.count(arg) > 0) args.push_back(arg);
  }
  return args;
}

std::vector<Node*> ControlOutputsIn(const CallSite& site, const NodeSet& nodes,
                                    const FunctionPart& part) {
  std::vector<Node*> found;
  for (const Node* node : site.body->control_ret_nodes) {
    if (nodes.count(node) > 0) found.push_back(part.Find(node));
  }
  return found;
}

class Divider {
 public:
  Divider(const FunctionLibraryDefinition& library,
          const std::vector<StepInput>& inputs, const std::string& prefix,
          int loops, StepDivision* division)
      : library_(library),
        given_(inputs),
        inputs_(inputs),
        prefix_(prefix),
        loops_(loops),
        division_(*division) {}

  Status Divide(const FunctionDef& step);

 private:
  Status DivideFlat(const FunctionDef& step, CallSite* root);
  Status DivideInLoop(const FunctionDef& step, StepDivision* division);
  // After DivideFlat: divides the loop that reads the iterators, too. Sets
  // why_not unless what runs ahead is the same there.
  Status DivideLoopToo(const FunctionDef& step);
  // A part that `division` has.
  static const FunctionDef& Part(const StepDivision& division,
                                 const std::string& name);
  // Finds what runs ahead. Sets why_not if nothing does.
  void Partition(const CallSite& root, const FlatStep& flat);
  bool ReadsInOneRegion(const CallSite& root, const FlatStep& flat,
                        const StagePartition& partition);
  void Describe(const FlatStep& flat, const StagePartition& partition,
                const XlaDivision& divided);
  // Makes variables of the states that are used otherwise, too, or whose draws
  // are not all ahead. Returns whether that changes what runs ahead.
  bool DropStates(const CallSite& root, const FlatStep& flat);
  Status DivideSite(CallSite* site, Level* level);
  Status DivideCall(CallSite* site, Node* call, CallSite* called, Level* level);
  // Defines the function of `nodes` of `called`, and adds its call to `site`. It
  // gets the parameters that it uses and the tensors `carried`, of which
  // `*results` has the values in `site`. Adds its own results there.
  Status AddPart(CallSite* site, const Node& call, const CallSite& called,
                 bool is_ahead, const NodeSet& nodes,
                 const std::vector<NodeOutput>& carried,
                 const std::vector<NodeOutput>& returned, NodeOutputs* results,
                 Node** added);
  // Replaces the uses of a call by those of its parts.
  Status ReplaceCall(CallSite* site, const Node& call,
                     const std::vector<NodeOutput>& outputs,
                     const NodeOutputs& results,
                     const std::vector<Node*>& parts, const Level& level);
  // The tensor of the flat graph that is `tensor` of `site`.
  std::pair<const Node*, int> OriginOf(const CallSite& site,
                                       const NodeOutput& tensor) const;
  Status Walk(const CallSite& site, Level* level);
  bool HasAhead(const CallSite& site) const;
  // Adds what reads the states of the random generators after the draws.
  Status AddStateReads(const CallSite& root, FunctionPart* part,
                       std::vector<std::pair<Node*, int>>* states);
  Status DefineAhead(const FunctionDef& step, const CallSite& root,
                     const Level& level);
  Status DefineRest(const FunctionDef& step, const CallSite& root,
                    const Level& level,
                    const std::vector<PartialTensorShape>& shapes);
  std::vector<PartialTensorShape> DescribeRecord(const CallSite& root,
                                                 const Level& level);
  // The name of the next part of `origin`.
  std::string NewName(const std::string& kind, const FunctionDef& origin) {
    const std::string name = absl::StrCat(prefix_, kind, "_", num_functions_++);
    division_.origins[name] = origin.signature().name();
    return name;
  }

  const FunctionLibraryDefinition& library_;
  const std::vector<StepInput> given_;
  std::vector<StepInput> inputs_;
  const std::string prefix_;
  // How many loops are around the step.
  const int loops_;
  StepDivision& division_;
  int num_functions_ = 0;
  // The loop that reads the iterators, or null.
  const Node* loop_ = nullptr;

  std::unique_ptr<FlatStep> flat_;
  std::map<const CallSite*, Level> levels_;
  // Of outputs of divided calls, in the graphs of all sites: the tensors of the
  // flat graph.
  std::map<std::pair<const Node*, int>, std::pair<const Node*, int>> origins_;
};

Status Divider::Divide(const FunctionDef& step) {
  for (size_t i = 0; i < inputs_.size() && division_.buffer_input < 0; ++i) {
    if (inputs_[i].kind == InputKind::kIterator) division_.buffer_input = i;
  }
  if (division_.buffer_input < 0) {
    division_.why_not = "no argument is a tf.data iterator";
    return OkStatus();
  }
  const auto compiled = step.attr().find("_XlaMustCompile");
  if (compiled != step.attr().end() && compiled->second.b()) {
    division_.why_not = "XLA compiles the whole step";
    return OkStatus();
  }
  std::unique_ptr<CallSite> root;
  TF_RETURN_IF_ERROR(FindCallSites(step, library_, &root));
  if (inputs_.size() != root->body->arg_nodes.size()) {
    return errors::InvalidArgument(
        "'", step.signature().name(), "' has ", root->body->arg_nodes.size(),
        " inputs, and ", inputs_.size(), " are described.");
  }
  for (const Node* output : root->body->ret_nodes) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(output->input_edge(0, &edge));
    const Node* const returned = BehindIdentities(edge);
    // The body of a loop does, for its next iteration.
    if (loops_ == 0 && returned->IsArg() &&
        inputs_[IndexOf(*returned)].kind == InputKind::kIterator) {
      division_.why_not = "it returns its iterator";
      return OkStatus();
    }
  }
  bool loop_alone = true;
  loop_ = LoopThatReads(*root, inputs_, &loop_alone);
  if (loop_ == nullptr) return DivideFlat(step, root.get());
  if (loops_ == kDeepestLoop) {
    return errors::InvalidArgument("'", step.signature().name(),
                                   "' reads its iterators in loops that are "
                                   "nested more than ",
                                   kDeepestLoop, " deep.");
  }
  if (loop_alone) return DivideInLoop(step, &division_);
  TF_RETURN_IF_ERROR(DivideFlat(step, root.get()));
  if (!division_.why_not.empty()) return OkStatus();
  return DivideLoopToo(step);
}

Status Divider::DivideInLoop(const FunctionDef& step, StepDivision* division) {
  return DivideLoop(step, *loop_, given_, library_, prefix_, loops_, division);
}

const FunctionDef& Divider::Part(const StepDivision& division,
                                 const std::string& name) {
  return *std::find_if(division.functions.function().begin(),
                       division.functions.function().end(),
                       [&name](const FunctionDef& function) {
                         return function.signature().name() == name;
                       });
}

Status Divider::DivideLoopToo(const FunctionDef& step) {
  StepDivision looped;
  TF_RETURN_IF_ERROR(DivideInLoop(Part(division_, division_.rest), &looped));
  FunctionLibraryDefinition all(library_);
  TF_RETURN_IF_ERROR(all.AddLibrary(division_.functions));
  TF_RETURN_IF_ERROR(all.AddLibrary(looped.functions));
  // The buffer's handle is the last input of both.
  std::vector<int> inputs = division_.ahead_inputs;
  std::vector<int> inputs_in_loop = looped.ahead_inputs;
  for (std::vector<int>* list : {&inputs, &inputs_in_loop}) {
    list->push_back(inputs_.size());
  }
  if (looped.why_not.empty() &&
      (looped.buffer_input != division_.buffer_input ||
       looped.random_states != division_.random_states ||
       !IsSameFunction(Part(division_, division_.ahead), inputs,
                       Part(looped, looped.ahead), inputs_in_loop, all))) {
    looped.why_not = absl::StrCat("loop '", loop_->name(),
                                  "' reads other records than the step does "
                                  "beside it");
  }
  if (!looped.why_not.empty()) {
    division_.why_not = looped.why_not;
    division_.functions.Clear();
    return OkStatus();
  }
  division_.rest = looped.rest;
  looped.origins[looped.rest] = step.signature().name();
  division_.origins.merge(looped.origins);
  division_.functions.MergeFrom(looped.functions);
  return OkStatus();
}

Status Divider::DivideFlat(const FunctionDef& step, CallSite* root) {
  // The draws show which variables are states of random generators.
  for (StepInput& input : inputs_) {
    if (input.kind == InputKind::kVariable) {
      input.kind = InputKind::kRandomState;
    }
  }
  do {
    levels_.clear();
    TF_RETURN_IF_ERROR(
        FlatStep::Create(*root, inputs_, library_, loop_, &flat_));
    Partition(*root, *flat_);
    if (!division_.why_not.empty()) return OkStatus();
  } while (DropStates(*root, *flat_));
  Level level;
  TF_RETURN_IF_ERROR(DivideSite(root, &level));
  if (!division_.why_not.empty()) return OkStatus();
  const std::vector<PartialTensorShape> shapes = DescribeRecord(*root, level);
  TF_RETURN_IF_ERROR(DefineAhead(step, *root, level));
  return DefineRest(step, *root, level, shapes);
}

bool Divider::ReadsInOneRegion(const CallSite& root, const FlatStep& flat,
                               const StagePartition& partition) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind != InputKind::kIterator) continue;
    const Node* handle = flat.Find({&root, root.body->arg_nodes[i]});
    for (const Edge* edge : handle->out_edges()) {
      // The body of a loop returns the iterator for the next iteration.
      const SiteNode user = flat.Original(*edge->dst());
      if (edge->IsControlEdge() || user.node == nullptr ||
          user.node->type_string() == "Identity" || user.node == loop_ ||
          std::find(flat.reads().begin(), flat.reads().end(), user) !=
              flat.reads().end()) {
        continue;
      }
      division_.why_not =
          absl::StrCat("'", user.node->name(), "' (", user.node->type_string(),
                       ") uses the iterator other than by next()");
      return false;
    }
  }
  for (const SiteNode& read : flat.reads()) {
    const Node* reader = flat.Find(read);
    const LocatedReason why = partition.WhyNot(*reader);
    if (why.reason != StepReason::kNone) {
      division_.why_not =
          absl::StrCat("'", reader->name(), "', which reads the iterator, ",
                       ReasonText(*reader, why));
      return false;
    }
  }
  if (flat.reads().empty()) {
    division_.why_not = "the step does not read the iterator";
    return false;
  }
  if (partition.regions().size() != 1) {
    division_.why_not = "it reads its iterator in several independent ways";
    return false;
  }
  return true;
}

void Divider::Partition(const CallSite& root, const FlatStep& flat) {
  const StagePartition partition(flat.graph(), NodeFilter(),
                                 RecordContent::kBoundaryOnly);
  if (!ReadsInOneRegion(root, flat, partition)) return;
  const XlaDivision divided =
      DivideXlaCalls(flat, partition.regions()[0].nodes);
  division_.why_not = divided.why_not;
  if (!divided.why_not.empty()) return;
  size_t originals = 0;
  for (const Node* node : divided.ahead) {
    const SiteNode original = flat.Original(*node);
    if (original.node == nullptr) continue;
    ++originals;
    Level& level = levels_[original.site];
    level.ahead.insert(original.node);
    if (divided.repeated.count(node) > 0) level.repeated.insert(original.node);
  }
  Describe(flat, partition, divided);
  if (originals > flat.reads().size()) return;
  division_.why_not = "nothing that follows the data can run ahead";
  if (!division_.outside.empty()) {
    const StepDivision::Outside& first = division_.outside[0];
    absl::StrAppend(&division_.why_not, ": '", first.name, "' (", first.op,
                    ") ", first.why);
  }
}

void Divider::Describe(const FlatStep& flat, const StagePartition& partition,
                       const XlaDivision& divided) {
  division_.nodes_ahead.clear();
  division_.outside.clear();
  const std::set<const Node*> ahead(divided.ahead.begin(), divided.ahead.end());
  std::set<const Node*> named;
  for (const Node* node : divided.ahead) {
    if (flat.Original(*node).node != nullptr) {
      division_.nodes_ahead.push_back(node->name());
    }
    for (const Edge* edge : node->out_edges()) {
      const Node& user = *edge->dst();
      if (edge->IsControlEdge() || !user.IsOp() || ahead.count(&user) > 0 ||
          flat.Original(user).node == nullptr || named.size() >= kMostOutside ||
          !named.insert(&user).second) {
        continue;
      }
      const LocatedReason why = partition.WhyNot(user);
      division_.outside.push_back({user.name(), user.type_string(),
                                   why.reason == StepReason::kNone
                                       ? "is compiled by XLA"
                                       : ReasonText(user, why)});
    }
  }
}

bool Divider::DropStates(const CallSite& root, const FlatStep& flat) {
  bool dropped = false;
  division_.random_states.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<SiteNode>& draws = flat.DrawsOf(i);
    if (draws.empty()) continue;
    size_t ahead = 0;
    for (const SiteNode& draw : draws) {
      ahead += levels_[draw.site].ahead.count(draw.node);
    }
    const Node* state = flat.Find({&root, root.body->arg_nodes[i]});
    const bool other_uses =
        std::any_of(state->out_edges().begin(), state->out_edges().end(),
                    [](const Edge* edge) { return !edge->IsControlEdge(); });
    if (ahead == 0) continue;
    if (other_uses || ahead < draws.size()) {
      inputs_[i].kind = InputKind::kVariable;
      dropped = true;
      continue;
    }
    for (const SiteNode& draw : draws) {
      levels_[draw.site].twice.insert(draw.node);
    }
    division_.random_states.push_back(i);
  }
  return dropped;
}

bool Divider::HasAhead(const CallSite& site) const {
  const auto found = levels_.find(&site);
  if (found != levels_.end() && !found->second.ahead.empty()) return true;
  return std::any_of(
      site.calls.begin(), site.calls.end(),
      [this](const auto& call) { return HasAhead(*call.second); });
}

Status Divider::DivideSite(CallSite* site, Level* level) {
  *level = levels_[site];
  for (const auto& [id, called] : site->calls) {
    if (!HasAhead(*called)) continue;
    TF_RETURN_IF_ERROR(DivideCall(site, called->call, called.get(), level));
    if (!division_.why_not.empty()) return OkStatus();
  }
  return Walk(*site, level);
}

Status Divider::Walk(const CallSite& site, Level* level) {
  std::vector<NodeOutput> outputs;
  TF_RETURN_IF_ERROR(OutputsOf(site, &outputs));
  std::set<NodeOutput, NodeIdLess> boundary;
  std::vector<const Node*> to_visit;
  // Only those whose values the rest uses.
  NodeSet repeated;
  const auto to_repeat = [&repeated, &to_visit](const Node* node) {
    if (repeated.insert(node).second) to_visit.push_back(node);
  };
  for (const NodeOutput& output : outputs) {
    if (level->ahead.count(output.node) == 0) {
      to_visit.push_back(output.node);
    } else if (site.caller == nullptr) {
      boundary.insert(output);
    }
  }
  for (const Node* node : site.body->control_ret_nodes) {
    to_visit.push_back(node);
  }
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    if (!node->IsOp() || node->IsArg() ||
        (level->ahead.count(node) > 0 && level->twice.count(node) == 0 &&
         repeated.count(node) == 0) ||
        !level->rest.insert(node).second) {
      continue;
    }
    for (const Edge* edge : node->in_edges()) {
      const Node* before = edge->src();
      if (!edge->IsControlEdge() && level->repeated.count(before) > 0) {
        to_repeat(before);
      } else if (!edge->IsControlEdge() && level->ahead.count(before) > 0) {
        boundary.insert({before, edge->src_output()});
      } else {
        to_visit.push_back(before);
      }
    }
  }
  level->boundary.assign(boundary.begin(), boundary.end());
  to_visit.assign(level->ahead.begin(), level->ahead.end());
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    for (const Edge* edge : node->in_edges()) {
      const Node* before = edge->src();
      if (!before->IsOp() || before->IsArg() ||
          level->ahead.count(before) > 0) {
        continue;
      }
      if (level->called_rests.count(before) > 0) {
        // What runs ahead waits for nothing that has an effect in the step.
        if (edge->IsControlEdge()) continue;
        division_.why_not = absl::StrCat(
            "'", node->name(), "' is needed ahead, and uses a result of '",
            before->name(), "' that depends on no element");
        return OkStatus();
      }
      if (level->shared.insert(before).second) to_visit.push_back(before);
    }
  }
  return OkStatus();
}

std::pair<const Node*, int> Divider::OriginOf(const CallSite& site,
                                              const NodeOutput& tensor) const {
  const auto origin = origins_.find({tensor.node, tensor.index});
  return origin != origins_.end()
             ? origin->second
             : flat_->Resolve(site, *tensor.node, tensor.index);
}

Status Divider::AddPart(CallSite* site, const Node& call,
                        const CallSite& called, bool is_ahead,
                        const NodeSet& nodes,
                        const std::vector<NodeOutput>& carried,
                        const std::vector<NodeOutput>& returned,
                        NodeOutputs* results, Node** added) {
  FunctionPart part(library_);
  std::vector<NodeOutput> inputs;
  for (const Node* arg : ArgsOf(called, nodes)) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
    TF_RETURN_IF_ERROR(PassedBy(call, *arg, &inputs.emplace_back()));
  }
  for (const NodeOutput& tensor : carried) {
    TF_RETURN_IF_ERROR(part.AddInput(tensor));
    inputs.push_back(results->at(tensor));
  }
  TF_RETURN_IF_ERROR(part.AddNodes(nodes));
  for (const NodeOutput& tensor : returned) {
    TF_RETURN_IF_ERROR(part.AddOutput(tensor));
  }
  const FunctionDef& function = called.body->fdef;
  FunctionDef* const defined = division_.functions.add_function();
  TF_RETURN_IF_ERROR(
      part.Define(NewName(is_ahead ? "ahead" : "rest", function), function,
                  ControlOutputsIn(called, nodes, part), defined));
  NodeDef def = call.def();
  def.clear_input();
  def.set_op("StatefulPartitionedCall");
  def.set_name(absl::StrCat(call.name(), "/", defined->signature().name()));
  for (const char* attr : kOfWholeCall) def.mutable_attr()->erase(attr);
  if (is_ahead) {
    for (const char* attr : kCompiledAttrs) {
      def.mutable_attr()->erase(attr);
      defined->mutable_attr()->erase(attr);
    }
  }
  NameAttrList name;
  name.set_name(defined->signature().name());
  AddNodeAttr("f", name, &def);
  DataTypeVector in, out;
  for (const auto& arg : defined->signature().input_arg()) {
    in.push_back(arg.type());
  }
  for (const auto& arg : defined->signature().output_arg()) {
    out.push_back(arg.type());
  }
  AddNodeAttr("Tin", in, &def);
  AddNodeAttr("Tout", out, &def);
  Status status;
  *added = site->graph()->AddNode(std::move(def), &status);
  TF_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < inputs.size(); ++i) {
    site->graph()->AddEdge(const_cast<Node*>(inputs[i].node), inputs[i].index,
                           *added, i);
  }
  for (size_t i = 0; i < returned.size(); ++i) {
    (*results)[returned[i]] = {*added, static_cast<int>(i)};
  }
  return OkStatus();
}

Status Divider::DivideCall(CallSite* site, Node* call, CallSite* called,
                           Level* level) {
  Level inner;
  TF_RETURN_IF_ERROR(DivideSite(called, &inner));
  if (!division_.why_not.empty()) return OkStatus();
  std::vector<NodeOutput> outputs;
  TF_RETURN_IF_ERROR(OutputsOf(*called, &outputs));
  // 1. The part ahead returns what the rest of the callee and the caller use.
  std::vector<NodeOutput> returned = inner.boundary;
  std::vector<NodeOutput> stays;
  for (const NodeOutput& output : outputs) {
    if (output.node->IsArg()) continue;
    std::vector<NodeOutput>& list =
        inner.ahead.count(output.node) > 0 ? returned : stays;
    if (std::find(list.begin(), list.end(), output) == list.end()) {
      list.push_back(output);
    }
  }
  NodeOutputs results;
  std::vector<Node*> parts(1);
  TF_RETURN_IF_ERROR(AddPart(site, *call, *called, /*is_ahead=*/true,
                             inner.AheadAndShared(), /*carried=*/{}, returned,
                             &results, &parts[0]));
  for (const NodeOutput& tensor : returned) {
    const NodeOutput& result = results[tensor];
    origins_[{result.node, result.index}] = OriginOf(*called, tensor);
  }
  level->ahead.insert(parts[0]);
  // 2. The rest of the callee gets what it uses of that.
  if (!inner.rest.empty()) {
    parts.push_back(nullptr);
    TF_RETURN_IF_ERROR(AddPart(site, *call, *called, /*is_ahead=*/false,
                               inner.rest, inner.boundary, stays, &results,
                               &parts[1]));
    level->called_rests.insert(parts[1]);
  }
  return ReplaceCall(site, *call, outputs, results, parts, *level);
}

Status Divider::ReplaceCall(CallSite* site, const Node& call,
                            const std::vector<NodeOutput>& outputs,
                            const NodeOutputs& results,
                            const std::vector<Node*>& parts,
                            const Level& level) {
  Graph* const graph = site->graph();
  // 1. Both parts wait for what the call waited for, and what waited for the
  //    call waits for both. The part ahead waits only for what is ahead.
  const std::vector<const Edge*> inputs(call.in_edges().begin(),
                                        call.in_edges().end());
  for (const Edge* edge : inputs) {
    if (!edge->IsControlEdge() || !edge->src()->IsOp()) continue;
    for (Node* part : parts) {
      if (level.ahead.count(part) == 0 || level.ahead.count(edge->src()) > 0) {
        graph->AddControlEdge(edge->src(), part);
      }
    }
  }
  const std::vector<const Edge*> uses(call.out_edges().begin(),
                                      call.out_edges().end());
  for (const Edge* edge : uses) {
    Node* const user = edge->dst();
    const int input = edge->dst_input();
    if (!user->IsOp()) continue;
    if (edge->IsControlEdge()) {
      for (Node* part : parts) graph->AddControlEdge(part, user);
      continue;
    }
    const NodeOutput& output = outputs[edge->src_output()];
    NodeOutput result;
    if (output.node->IsArg()) {
      TF_RETURN_IF_ERROR(PassedBy(call, *output.node, &result));
    } else {
      result = results.at(output);
    }
    graph->RemoveEdge(edge);
    graph->AddEdge(const_cast<Node*>(result.node), result.index, user, input);
  }
  auto& control = site->body->control_ret_nodes;
  const auto returned = std::find(control.begin(), control.end(), &call);
  if (returned != control.end()) {
    *returned = parts[0];
    control.insert(control.end(), parts.begin() + 1, parts.end());
  }
  // 2. Nothing leads to the call any more; its node stays, unused.
  while (!call.in_edges().empty()) graph->RemoveEdge(*call.in_edges().begin());
  while (!call.out_edges().empty()) {
    graph->RemoveEdge(*call.out_edges().begin());
  }
  return OkStatus();
}

std::vector<PartialTensorShape> Divider::DescribeRecord(const CallSite& root,
                                                        const Level& level) {
  StagedRegion region;
  for (const NodeOutput& tensor : level.boundary) {
    const auto [node, index] = OriginOf(root, tensor);
    region.boundary.push_back({node, index});
  }
  std::vector<PartialTensorShape> shapes =
      BoundaryShapes(flat_->graph(), region);
  for (size_t i = 0; i < level.boundary.size(); ++i) {
    division_.record.push_back(
        {region.boundary[i].name(),
         level.boundary[i].node->output_type(level.boundary[i].index),
         shapes[i]});
  }
  // Their states come last.
  for (const int index : division_.random_states) {
    shapes.emplace_back(std::vector<int64_t>{-1});
    division_.record.push_back({absl::StrCat("state of ", inputs_[index].name),
                                DT_INT64, shapes.back()});
  }
  return shapes;
}

Status Divider::AddStateReads(const CallSite& root, FunctionPart* part,
                              std::vector<std::pair<Node*, int>>* states) {
  for (const int index : division_.random_states) {
    Node* const copy = part->Find(root.body->arg_nodes[index]);
    // After all draws.
    std::vector<Node*> draws;
    for (const Edge* edge : copy->out_edges()) draws.push_back(edge->dst());
    Node* read = nullptr;
    TF_RETURN_IF_ERROR(
        NodeBuilder(part->NewName("staging_state", {}), "ReadVariableOp")
            .Input(copy)
            .Attr("dtype", DT_INT64)
            .ControlInputs(draws)
            .Finalize(part->graph(), &read));
    states->emplace_back(read, 0);
  }
  return OkStatus();
}

Status Divider::DefineAhead(const FunctionDef& step, const CallSite& root,
                            const Level& level) {
  FunctionPart part(library_);
  const NodeSet nodes = level.AheadAndShared();
  for (const Node* arg : ArgsOf(root, nodes)) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
    division_.ahead_inputs.push_back(IndexOf(*arg));
  }
  Node* handle = nullptr;
  TF_RETURN_IF_ERROR(part.AddInput("staging_buffer", DT_RESOURCE, &handle));
  TF_RETURN_IF_ERROR(part.AddNodes(nodes));
  std::vector<std::pair<Node*, int>> sources;
  std::vector<NodeBuilder::NodeOut> values;
  for (const NodeOutput& tensor : level.boundary) {
    sources.push_back(part.Find(tensor));
  }
  TF_RETURN_IF_ERROR(AddStateReads(root, &part, &sources));
  for (const auto& [node, output] : sources) {
    values.emplace_back(node, output);
  }
  Node* put = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder(part.NewName("staging_put", nodes), kStepPutOp)
                         .Input(handle)
                         .Input(values)
                         .Finalize(part.graph(), &put));
  // A check that fails must come before the record does.
  std::vector<Node*> control = ControlOutputsIn(root, level.ahead, part);
  for (Node* node : control) part.graph()->AddControlEdge(node, put);
  control.push_back(put);
  division_.ahead = NewName("ahead", step);
  return part.Define(division_.ahead, step, control,
                     division_.functions.add_function());
}

// The Take has the name of the read that it replaces, so that its errors name
// the same line of the program.
std::string NameOfTake(const CallSite& root, const Level& level) {
  for (const Node* node : level.ahead) {
    if (node->type_string() == "IteratorGetNext") return node->name();
  }
  return "staging_take";
}

Status Divider::DefineRest(const FunctionDef& step, const CallSite& root,
                           const Level& level,
                           const std::vector<PartialTensorShape>& shapes) {
  FunctionPart part(library_);
  for (Node* arg : root.body->arg_nodes) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
  }
  Node* const handle = part.Find(root.body->arg_nodes[division_.buffer_input]);
  DataTypeVector dtypes;
  for (const NodeOutput& tensor : level.boundary) {
    dtypes.push_back(tensor.node->output_type(tensor.index));
  }
  dtypes.insert(dtypes.end(), division_.random_states.size(), DT_INT64);
  Node* take = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(part.NewName(NameOfTake(root, level), level.rest),
                  kStepTakeOp)
          .Input(handle)
          .Attr(kDtypesAttr, dtypes)
          .Attr(kShapesAttr, shapes)
          .Finalize(part.graph(), &take));
  for (size_t i = 0; i < level.boundary.size(); ++i) {
    part.Replace(level.boundary[i], take, i);
  }
  TF_RETURN_IF_ERROR(part.AddNodes(level.rest, level.ahead, take));
  std::vector<NodeOutput> outputs;
  TF_RETURN_IF_ERROR(OutputsOf(root, &outputs));
  for (const NodeOutput& output : outputs) {
    TF_RETURN_IF_ERROR(part.AddOutput(output));
  }
  std::vector<Node*> control = ControlOutputsIn(root, level.rest, part);
  control.push_back(take);
  division_.rest = NewName("rest", step);
  return part.Define(division_.rest, step, control,
                     division_.functions.add_function());
}

}  // namespace

Status DivideStep(const FunctionDef& step,
                  const FunctionLibraryDefinition& library,
                  const std::vector<StepInput>& inputs,
                  const std::string& prefix, StepDivision* division,
                  int loops) {
  return Divider(library, inputs, prefix, loops, division).Divide(step);
}

}  // namespace staging
}  // namespace tensorflow
