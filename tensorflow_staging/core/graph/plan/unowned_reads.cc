// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/plan/unowned_reads.h"

#include <string>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kRemoteCallOp[] = "RemoteCall";
constexpr char kEagerPythonOp[] = "EagerPyFunc";

// Whether `node` is of type `op`, or calls a function with such a node.
bool Runs(const NodeDef& node, const std::string& op,
          const FunctionLibraryDefinition& functions) {
  const auto is_op = [&op](const NodeDef& inner) { return inner.op() == op; };
  return is_op(node) ||
         AnyNodeOfFunctions(CalledFunctions(node, functions), functions, is_op);
}

// The handles of iterators that `node` depends on.
std::vector<const Node*> IteratorsBehind(const Node& node) {
  std::vector<const Node*> found;
  for (const Node* input : WithAncestors({&node})) {
    if (IsIteratorHandle(*input)) found.push_back(input);
  }
  return found;
}

std::vector<UnownedRead> Find(const Graph& graph, const PlannedStage& stage) {
  using Reason = UnownedRead::Reason;
  std::vector<UnownedRead> reads;
  const std::string& buffer = stage.puts.front()->assigned_device_name();
  for (const Node* node : stage.Nodes()) {
    if (IsIteratorHandle(*node)) {
      const std::string& device = node->assigned_device_name();
      if (!device.empty() && !buffer.empty() &&
          !DeviceNameUtils::IsSameAddressSpace(device, buffer)) {
        reads.push_back({Reason::kOtherProcess, node, node});
      }
    } else if (Runs(node->def(), kRemoteCallOp, graph.flib_def())) {
      for (const Node* iterator : IteratorsBehind(*node)) {
        reads.push_back({Reason::kRemoteCall, iterator, node});
      }
    } else if (Runs(node->def(), kEagerPythonOp, graph.flib_def())) {
      reads.push_back({Reason::kEagerPython, nullptr, node});
    }
  }
  return reads;
}

}  // namespace

std::vector<std::vector<UnownedRead>> FindUnownedReads(const Graph& graph,
                                                       const StagePlan& plan) {
  std::vector<std::vector<UnownedRead>> reads;
  for (const PlannedStage& stage : plan.stages()) {
    reads.push_back(stage.puts.empty() ? std::vector<UnownedRead>()
                                       : Find(graph, stage));
  }
  return reads;
}

}  // namespace staging
}  // namespace tensorflow
