// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/call_division.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/compat/function_body.h"
#include "tensorflow_staging/core/framework/graph_edits.h"

namespace tensorflow {
namespace staging {
namespace {

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

// Sets `*tensor` to what `call` passes for a parameter of its function.
Status PassedBy(const Node& call, const Node& arg, NodeOutput* tensor) {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(call.input_edge(IndexOf(arg), &edge));
  *tensor = {edge->src(), edge->src_output()};
  return OkStatus();
}

// Returns the call of `function`, which has a part of what `call` calls.
NodeDef CallOfPart(const Node& call, const FunctionDef& function,
                   bool is_ahead) {
  const OpDef& signature = function.signature();
  NodeDef def = call.def();
  def.clear_input();
  def.set_op("StatefulPartitionedCall");
  def.set_name(absl::StrCat(call.name(), "/", signature.name()));
  for (const char* attr : kOfWholeCall) def.mutable_attr()->erase(attr);
  if (is_ahead) {
    for (const char* attr : kCompiledAttrs) def.mutable_attr()->erase(attr);
  }
  NameAttrList name;
  name.set_name(signature.name());
  AddNodeAttr("f", name, &def);
  DataTypeVector in, out;
  for (const auto& arg : signature.input_arg()) in.push_back(arg.type());
  for (const auto& arg : signature.output_arg()) out.push_back(arg.type());
  AddNodeAttr("Tin", in, &def);
  AddNodeAttr("Tout", out, &def);
  return def;
}

// Lets both parts wait for what the call waited for, and what waited for the
// call wait for both. The part ahead waits only for what is ahead.
void ReplaceControlEdges(const Node& call, const std::vector<Node*>& parts,
                         const NodeSet& ahead, CallSite* site) {
  Graph* const graph = site->graph();
  const std::vector<const Edge*> inputs(call.in_edges().begin(),
                                        call.in_edges().end());
  for (const Edge* edge : inputs) {
    if (!edge->IsControlEdge() || !edge->src()->IsOp()) continue;
    for (Node* part : parts) {
      if (ahead.count(part) == 0 || ahead.count(edge->src()) > 0) {
        graph->AddControlEdge(edge->src(), part);
      }
    }
  }
  const std::vector<const Edge*> uses(call.out_edges().begin(),
                                      call.out_edges().end());
  for (const Edge* edge : uses) {
    if (!edge->IsControlEdge() || !edge->dst()->IsOp()) continue;
    for (Node* part : parts) graph->AddControlEdge(part, edge->dst());
  }
  auto& control = site->body->control_ret_nodes;
  const auto returned = absl::c_find(control, &call);
  if (returned != control.end()) {
    *returned = parts[0];
    control.insert(control.end(), parts.begin() + 1, parts.end());
  }
}

// Removes all edges of a node, which stays in its graph, unused.
void Disconnect(const Node& node, Graph* graph) {
  while (!node.in_edges().empty()) graph->RemoveEdge(*node.in_edges().begin());
  while (!node.out_edges().empty()) {
    graph->RemoveEdge(*node.out_edges().begin());
  }
}

}  // namespace

bool CallDivision::HasAhead(const CallSite& site) const {
  const auto found = step_.sites.find(&site);
  if (found != step_.sites.end() && !found->second.ahead.empty()) return true;
  return absl::c_any_of(
      site.calls, [this](const auto& call) { return HasAhead(*call.second); });
}

Status CallDivision::Divide(CallSite* site, SiteSides* sides) {
  const auto found = step_.sites.find(site);
  if (found != step_.sites.end()) *sides = found->second;
  for (const auto& [id, called] : site->calls) {
    if (!HasAhead(*called)) continue;
    TF_RETURN_IF_ERROR(DivideCall(site, called.get(), sides));
    if (!division_.why_not.empty()) return OkStatus();
  }
  return CompleteSides(*site, sides, &division_.why_not);
}

std::pair<const Node*, int> CallDivision::OriginOf(
    const CallSite& site, const NodeOutput& tensor) const {
  const auto origin = origins_.find({tensor.node, tensor.index});
  return origin != origins_.end()
             ? origin->second
             : step_.flat->Resolve(site, *tensor.node, tensor.index);
}

Status CallDivision::AddPart(CallSite* site, const CallSite& called,
                             bool is_ahead, const NodeSet& nodes,
                             const std::vector<NodeOutput>& carried,
                             const std::vector<NodeOutput>& returned,
                             NodeOutputs* results, Node** added) {
  FunctionPart part(library_);
  std::vector<NodeOutput> inputs;
  for (const Node* arg : ArgsOf(called, nodes)) {
    TF_RETURN_IF_ERROR(part.AddInput({arg, 0}));
    TF_RETURN_IF_ERROR(PassedBy(*called.call, *arg, &inputs.emplace_back()));
  }
  for (const NodeOutput& tensor : carried) {
    TF_RETURN_IF_ERROR(part.AddInput(tensor));
    inputs.push_back(results->at(tensor));
  }
  TF_RETURN_IF_ERROR(part.AddNodes(nodes));
  for (const NodeOutput& tensor : returned) {
    TF_RETURN_IF_ERROR(part.AddOutput(tensor));
  }
  const FunctionDef& function = DefinitionOf(*called.body);
  FunctionDef* const defined = division_.functions.add_function();
  TF_RETURN_IF_ERROR(part.Define(
      division_.NewName(prefix_, is_ahead ? "ahead" : "rest", function),
      function, ControlOutputsIn(called, nodes, part), defined));
  if (is_ahead) {
    for (const char* attr : kCompiledAttrs)
      defined->mutable_attr()->erase(attr);
  }
  Status status;
  *added = site->graph()->AddNode(CallOfPart(*called.call, *defined, is_ahead),
                                  &status);
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

Status CallDivision::DivideCall(CallSite* site, CallSite* called,
                                SiteSides* sides) {
  SiteSides inner;
  TF_RETURN_IF_ERROR(Divide(called, &inner));
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
    if (!absl::c_linear_search(list, output)) list.push_back(output);
  }
  NodeOutputs results;
  std::vector<Node*> parts(1);
  TF_RETURN_IF_ERROR(AddPart(site, *called, /*is_ahead=*/true,
                             inner.AheadAndShared(), /*carried=*/{}, returned,
                             &results, &parts[0]));
  for (const NodeOutput& tensor : returned) {
    const NodeOutput& result = results[tensor];
    origins_[{result.node, result.index}] = OriginOf(*called, tensor);
  }
  sides->ahead.insert(parts[0]);
  if (absl::c_all_of(called->body->control_ret_nodes, [&inner](Node* node) {
        return inner.ahead.count(node) == 0 || inner.twice.count(node) > 0 ||
               inner.drawing_calls.count(node) > 0;
      })) {
    sides->drawing_calls.insert(parts[0]);
  }
  // 2. The rest of the callee gets what it uses of that.
  if (!inner.rest.empty()) {
    parts.push_back(nullptr);
    TF_RETURN_IF_ERROR(AddPart(site, *called, /*is_ahead=*/false, inner.rest,
                               inner.boundary, stays, &results, &parts[1]));
    sides->called_rests.insert(parts[1]);
  }
  // 3. The results of the parts replace those of the call.
  const Node& call = *called->call;
  ReplaceControlEdges(call, parts, sides->ahead, site);
  const std::vector<const Edge*> uses(call.out_edges().begin(),
                                      call.out_edges().end());
  for (const Edge* edge : uses) {
    if (edge->IsControlEdge() || !edge->dst()->IsOp()) continue;
    const NodeOutput& output = outputs[edge->src_output()];
    NodeOutput result;
    if (output.node->IsArg()) {
      TF_RETURN_IF_ERROR(PassedBy(call, *output.node, &result));
    } else {
      result = results.at(output);
    }
    MoveEdge(edge, const_cast<Node*>(result.node), result.index, site->graph());
  }
  Disconnect(call, site->graph());
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
