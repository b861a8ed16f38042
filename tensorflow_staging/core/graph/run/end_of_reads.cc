// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/run/end_of_reads.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

const Node* FindOrderedPut(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    bool is_ordered = false;
    if (IsBufferPut(*node) &&
        TryGetNodeAttr(node->attrs(), kIsOrderedAttr, &is_ordered) &&
        is_ordered) {
      return node;
    }
  }
  return nullptr;
}

// Stateful ops that each run may execute when it comes to them. What they do does
// not depend on other runs, or concerns nobody but the run; Python functions run as
// in tf.data's map, at the same time and in any order.
bool IsInAnyOrder(absl::string_view op) {
  static const auto* const kOps = new absl::flat_hash_set<absl::string_view>({
      kPutOp,
      "Assert",
      "CheckNumerics",
      "CheckNumericsV2",
      "EagerPyFunc",
      "Empty",
      "GuaranteeConst",
      "Iterator",
      "IteratorFromStringHandleV2",
      "IteratorV2",
      "OneShotIterator",
      "Print",
      "PrintV2",
      "PyFunc",
      "ReadVariableOp",
      "ResourceGather",
      "ResourceGatherNd",
      "StatelessRandomGetAlg",
      "VarHandleOp",
      "_Arg",
      "_Retval",
  });
  return kOps->contains(op) || absl::StartsWith(op, "LookupTable") ||
         absl::StartsWith(op, "TensorArray") ||
         absl::EndsWith(op, "HashTableV2");
}

// Whether a node has to happen in the order of the runs, or calls a function with
// one that has to.
bool IsOrdered(const NodeDef& def, const FunctionLibraryDefinition& functions) {
  const OpDef* op = nullptr;
  if (!functions.LookUpOpDef(def.op(), &op).ok()) return true;
  if (!op->is_stateful() || IsInAnyOrder(def.op())) return false;
  std::vector<std::string> called = CalledFunctions(def, functions);
  if (called.empty()) return true;
  return AnyNodeOfFunctions(
      std::move(called), functions, [&functions](const NodeDef& inner) {
        const OpDef* inner_op = nullptr;
        return !functions.LookUpOpDef(inner.op(), &inner_op).ok() ||
               (inner_op->is_stateful() && !IsInAnyOrder(inner.op()) &&
                CalledFunctions(inner, functions).empty());
      });
}

std::vector<Node*> FindOrdered(const Graph& graph) {
  std::vector<Node*> ordered;
  for (Node* node : graph.op_nodes()) {
    if (IsOrdered(node->def(), graph.flib_def())) ordered.push_back(node);
  }
  return ordered;
}

// Whether control flow of version 1 decides whether, or how often, one of `nodes`
// runs.
bool IsConditional(const Graph& graph, const std::vector<Node*>& nodes) {
  std::vector<const Node*> begin(nodes.begin(), nodes.end());
  bool is_conditional = false;
  ReverseDFSFrom(
      graph, begin, [](const Node*) {},
      [&is_conditional](const Node* node) {
        is_conditional |=
            node->IsSwitch() || node->IsMerge() || node->IsEnter();
      });
  return is_conditional;
}

// Returns the CPU of the task that has `node`.
Status CpuOf(const Node& node, std::string* cpu) {
  DeviceNameUtils::ParsedName device;
  if (!DeviceNameUtils::ParseFullName(node.assigned_device_name(), &device)) {
    return errors::Internal("'", node.name(), "' has no device, but '",
                            node.assigned_device_name(), "'.");
  }
  device.has_type = device.has_id = true;
  device.type = DEVICE_CPU;
  device.id = 0;
  *cpu = DeviceNameUtils::ParsedNameToString(device);
  return OkStatus();
}

}  // namespace

Status AddEndOfReads(Graph* graph) {
  const Node* const put = FindOrderedPut(*graph);
  if (put == nullptr) return OkStatus();
  const std::vector<Node*> ordered = FindOrdered(*graph);
  if (IsConditional(*graph, ordered)) return OkStatus();
  std::string cpu;
  TF_RETURN_IF_ERROR(CpuOf(*put, &cpu));
  Node* end = nullptr;
  TF_RETURN_IF_ERROR(
      NodeBuilder(graph->NewName(put->name() + "/end_reads"), kEndReadsOp)
          .ControlInputs(ordered)
          .Finalize(graph, &end));
  end->set_assigned_device_name(cpu);
  if (ordered.empty()) graph->AddControlEdge(graph->source_node(), end);
  graph->AddControlEdge(end, graph->sink_node());
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
