// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/ahead/division/function_part.h"

#include <optional>
#include <unordered_set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

// Attributes of a function that say something of its inputs or outputs, or that
// tie it to its gradient.
constexpr const char* kNotForParts[] = {
    "_input_shapes",          "_implements",
    "api_implements",         "api_preferred_device",
    "backward_function_name", "forward_function_name"};

constexpr char kColocated[] = "loc:@";

// Removes the colocations with nodes that the part does not have.
void KeepColocationsWithin(Graph* graph) {
  std::unordered_set<std::string> names;
  for (const Node* node : graph->nodes()) names.insert(node->name());
  for (Node* node : graph->op_nodes()) {
    std::vector<std::string> all, kept;
    if (!TryGetNodeAttr(node->attrs(), "_class", &all)) continue;
    for (const std::string& entry : all) {
      if (!absl::StartsWith(entry, kColocated) ||
          names.count(std::string(absl::StripPrefix(entry, kColocated))) > 0) {
        kept.push_back(entry);
      }
    }
    if (kept.size() == all.size()) continue;
    node->ClearAttr("_class");
    if (!kept.empty()) node->AddAttr("_class", kept);
  }
}

}  // namespace

Status FunctionPart::AddInput(const NodeOutput& tensor) {
  Node* added = nullptr;
  if (tensor.node->IsArg()) {
    added = graph_.CopyNode(tensor.node);
    added->ClearAttr("index");
    added->AddAttr("index", num_inputs_++);
    copies_[tensor.node] = added;
  } else {
    TF_RETURN_IF_ERROR(
        AddInput(absl::StrCat("carried_", num_inputs_),
                 BaseType(tensor.node->output_type(tensor.index)), &added));
  }
  Replace(tensor, added, 0);
  return OkStatus();
}

Status FunctionPart::AddInput(const std::string& name, DataType dtype,
                              Node** added) {
  return NodeBuilder(name, "_Arg")
      .Attr("T", dtype)
      .Attr("index", num_inputs_++)
      .Finalize(&graph_, added);
}

std::string FunctionPart::NewName(const std::string& wanted,
                                  const NodeSet& others) const {
  std::unordered_set<std::string> names;
  for (const Node* node : graph_.nodes()) names.insert(node->name());
  for (const Node* node : others) names.insert(node->name());
  std::string name = wanted;
  for (int i = 1; names.count(name) > 0; ++i) {
    name = absl::StrCat(wanted, "_", i);
  }
  return name;
}

void FunctionPart::Replace(const NodeOutput& tensor, Node* node, int output) {
  replaced_[tensor] = {node, output};
}

Status FunctionPart::AddNodes(const NodeSet& nodes, const NodeSet& awaited,
                              Node* instead) {
  for (const Node* node : nodes) copies_[node] = graph_.CopyNode(node);
  for (const Node* node : nodes) {
    Node* const copy = copies_[node];
    for (const Edge* edge : node->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      if (edge->IsControlEdge()) {
        if (Node* src = Find(edge->src())) {
          graph_.AddControlEdge(src, copy);
        } else if (instead != nullptr && awaited.count(edge->src()) > 0) {
          graph_.AddControlEdge(instead, copy);
        }
        continue;
      }
      const auto [src, output] = Find({edge->src(), edge->src_output()});
      if (src == nullptr) {
        return errors::Internal("Input ", edge->dst_input(), " of '",
                                node->name(), "' is on the other side: '",
                                edge->src()->name(), "'.");
      }
      graph_.AddEdge(src, output, copy, edge->dst_input());
    }
  }
  return OkStatus();
}

Node* FunctionPart::Find(const Node* node) const {
  const auto found = copies_.find(node);
  return found == copies_.end() ? nullptr : found->second;
}

std::pair<Node*, int> FunctionPart::Find(const NodeOutput& tensor) const {
  const auto replaced = replaced_.find(tensor);
  if (replaced != replaced_.end()) return replaced->second;
  return {Find(tensor.node), tensor.index};
}

Status FunctionPart::AddOutput(const NodeOutput& tensor) {
  const auto [src, output] = Find(tensor);
  if (src == nullptr) {
    return errors::Internal("Nothing yields '", tensor.node->name(),
                            "', an output of a part of its function.");
  }
  return AddOutput(src, output);
}

Status FunctionPart::AddOutput(Node* node, int output) {
  const int index = num_outputs_++;
  Node* added = nullptr;
  return NodeBuilder(absl::StrCat("staged_result_", index), "_Retval")
      .Input(node, output)
      .Attr("index", index)
      .Finalize(&graph_, &added);
}

Status FunctionPart::Define(const std::string& name,
                            const FunctionDef& original,
                            const std::vector<Node*>& control_outputs,
                            FunctionDef* function) {
  KeepColocationsWithin(&graph_);
  std::map<const Node*, std::string> names;
  for (const Node* node : control_outputs) {
    names.emplace(node, absl::StrCat("control_", names.size()));
  }
  const auto control_ret =
      [&names](const Node* node) -> absl::optional<string> {
    const auto found = names.find(node);
    if (found == names.end()) return absl::nullopt;
    return found->second;
  };
  TF_RETURN_IF_ERROR(GraphToFunctionDef(graph_, name, control_ret, function));
  function->mutable_signature()->set_is_stateful(
      original.signature().is_stateful());
  *function->mutable_attr() = original.attr();
  for (const char* attr : kNotForParts) function->mutable_attr()->erase(attr);
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
