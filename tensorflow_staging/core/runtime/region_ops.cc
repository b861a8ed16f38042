// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/region_ops.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

bool IsPython(absl::string_view op) {
  return op == "PyFunc" || op == "PyFuncStateless" || op == "EagerPyFunc";
}

// The ops that yield an iterator, except OneShotIterator, which names the
// function that creates its dataset.
bool IsIteratorOfOtherRun(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"Iterator", "IteratorFromStringHandle",
                 "IteratorFromStringHandleV2", "IteratorV2",
                 "MultiDeviceIterator", "MultiDeviceIteratorFromStringHandle"});
  return kOps->contains(op);
}

bool Reads(absl::string_view op) {
  // The kernel of IteratorGetNext has a thread of its own, in which the dataset
  // computes; that of IteratorGetNextSync has not. Those of queues and buffers
  // wait without a thread.
  static const OpSet* const kOps =
      new OpSet({"IteratorGetNext", "QueueDequeueManyV2", "QueueDequeueUpToV2",
                 "QueueDequeueV2", kTakeOp});
  return kOps->contains(op);
}

bool OnlyMoves(absl::string_view op) {
  static const OpSet* const kOps = new OpSet(
      {"Const", "FIFOQueue", "FIFOQueueV2", "HostConst", "Identity",
       "IdentityN", "Iterator", "IteratorV2", "NoOp", "OneShotIterator",
       "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "_Retval", kPutOp});
  return Reads(op) || kOps->contains(op);
}

}  // namespace

bool MayCallPython(const Graph& graph,
                   const FunctionLibraryDefinition& functions) {
  const auto is_python = [](const NodeDef& node) {
    return IsPython(node.op());
  };
  const auto may_call = [&functions, is_python](const NodeDef& node) {
    return is_python(node) || (IsIteratorOfOtherRun(node.op()) &&
                               AnyNodeOfFunctions(functions.ListFunctionNames(),
                                                  functions, is_python));
  };
  std::vector<std::string> calls;
  for (const Node* node : graph.op_nodes()) {
    if (may_call(node->def())) return true;
    absl::c_move(CalledFunctions(node->def(), functions),
                 std::back_inserter(calls));
  }
  return AnyNodeOfFunctions(std::move(calls), functions, may_call);
}

bool UsesIteratorOfOtherRun(const Graph& graph) {
  return absl::c_any_of(graph.op_nodes(), [](const Node* node) {
    return IsIteratorOfOtherRun(node->type_string());
  });
}

bool OnlyMovesRecords(const Graph& graph) {
  return absl::c_all_of(graph.op_nodes(), [](const Node* node) {
    return OnlyMoves(node->type_string());
  });
}

int NumReads(const Graph& graph) {
  return absl::c_count_if(graph.op_nodes(), [](const Node* node) {
    return Reads(node->type_string());
  });
}

}  // namespace staging
}  // namespace tensorflow
