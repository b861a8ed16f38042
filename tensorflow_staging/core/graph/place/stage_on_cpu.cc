// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_on_cpu.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsResource(DataType type) {
  return BaseType(type) == DT_RESOURCE || IsRefType(type);
}

bool HoldsOrUsesResource(const Node& node) {
  for (DataType type : node.input_types()) {
    if (IsResource(type)) return true;
  }
  for (DataType type : node.output_types()) {
    if (IsResource(type)) return true;
  }
  return false;
}

// Copies one node as CopyToCpu does, but without its inputs. Adds it to
// `without_inputs` if it had no copy before.
Status CopyWithoutInputs(Node* node, const std::string& scope, Graph* graph,
                         CpuCopies* copies,
                         std::vector<const Node*>* without_inputs,
                         Node** copy) {
  *copy = node;
  if (!node->IsOp() || HoldsOrUsesResource(*node)) return OkStatus();
  // The copy of a loop and the original may be in one run.
  if (node->IsExit()) return OkStatus();
  const auto it = copies->find(node);
  if (it != copies->end()) {
    *copy = it->second;
    return OkStatus();
  }
  NodeDef def = node->def();
  def.clear_input();
  def.set_name(absl::StrCat(scope, "/", node->name()));
  def.set_device(CpuOfTask(*node));
  def.mutable_attr()->erase(kColocationAttrName);
  Status status;
  *copy = graph->AddNode(std::move(def), &status);
  TF_RETURN_IF_ERROR(status);
  MarkCopy(node->name(), *copy);
  (*copies)[node] = *copy;
  without_inputs->push_back(node);
  return OkStatus();
}

}  // namespace

std::string CpuOfTask(const Node& node) {
  DeviceNameUtils::ParsedName name;
  if (!DeviceNameUtils::ParseFullName(node.requested_device(), &name)) {
    name.Clear();
  }
  name.has_type = true;
  name.type = DEVICE_CPU;
  name.has_id = true;
  name.id = 0;
  return DeviceNameUtils::ParsedNameToString(name);
}

Status CopyToCpu(Node* node, const std::string& scope, Graph* graph,
                 CpuCopies* copies, Node** copy) {
  // Nodes whose copies have no inputs yet. A list instead of recursion, because
  // shared nodes may form a chain of any length.
  std::vector<const Node*> without_inputs;
  TF_RETURN_IF_ERROR(
      CopyWithoutInputs(node, scope, graph, copies, &without_inputs, copy));
  while (!without_inputs.empty()) {
    const Node* original = without_inputs.back();
    without_inputs.pop_back();
    Node* copied = copies->at(original);
    for (const Edge* edge : original->in_edges()) {
      if (!edge->src()->IsOp()) continue;
      Node* input = nullptr;
      TF_RETURN_IF_ERROR(CopyWithoutInputs(edge->src(), scope, graph, copies,
                                           &without_inputs, &input));
      graph->AddEdge(input, edge->src_output(), copied, edge->dst_input());
    }
  }
  return OkStatus();
}

bool AskForNoAccelerator(const std::vector<const Node*>& nodes) {
  return absl::c_none_of(nodes, [](const Node* node) {
    const AttrValue* const stream = node->attrs().Find(kStreamAttr);
    return IsAccelerator(node->requested_device()) ||
           (stream != nullptr && stream->i() != 0);
  });
}

void MoveToCpu(const std::vector<const Node*>& puts, Graph* graph) {
  const std::vector<const Node*> order = WithAncestors(puts);
  const absl::flat_hash_set<const Node*> leading_to_puts(order.begin(),
                                                         order.end());
  for (size_t i = puts.size(); i < order.size(); ++i) {
    if (HoldsOrUsesResource(*order[i])) continue;
    bool shared = false;
    for (const Edge* edge : order[i]->out_edges()) {
      shared = shared ||
               (edge->dst()->IsOp() && !leading_to_puts.contains(edge->dst()));
    }
    if (shared) continue;
    Node* node = graph->FindNodeId(order[i]->id());
    node->set_requested_device(CpuOfTask(*node));
    node->ClearAttr(kColocationAttrName);
  }
}

}  // namespace staging
}  // namespace tensorflow
