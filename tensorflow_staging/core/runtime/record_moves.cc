// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/record_moves.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

bool OnlyMoves(absl::string_view op) {
  // The kernel of IteratorGetNext has a thread of its own, in which the dataset
  // computes; that of IteratorGetNextSync has not. Those of queues and buffers
  // wait without a thread.
  static const OpSet* const kOps =
      new OpSet({"Const", "FIFOQueue", "FIFOQueueV2", "HostConst", "Identity",
                 "IdentityN", "Iterator", "IteratorGetNext", "IteratorV2",
                 "NoOp", "OneShotIterator", "PaddingFIFOQueueV2",
                 "QueueDequeueManyV2", "QueueDequeueUpToV2", "QueueDequeueV2",
                 "RandomShuffleQueueV2", "_Retval", kPutOp, kTakeOp});
  return kOps->contains(op);
}

}  // namespace

bool OnlyMovesRecords(const Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::all_of(nodes.begin(), nodes.end(), [](const Node* node) {
    return OnlyMoves(node->type_string());
  });
}

}  // namespace staging
}  // namespace tensorflow
