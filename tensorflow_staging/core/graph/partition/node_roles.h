// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_NODE_ROLES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_NODE_ROLES_H_

#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// What a node is to a staged part, seen by itself: what it depends on is the
// partition's business (stage_partition.h).
enum class NodeRole {
  // Depends on its inputs alone. May run on either side, any number of times.
  kPure,
  // Once for each record: draws random numbers, prints, checks, or calls
  // Python. May run ahead, on one side only.
  kOncePerRecord,
  // Hands out a resource that lives in the session and that a step does not
  // change: an iterator, or a table that only its initialiser fills. Both sides
  // use the same node, since a resource may be found by its node's name.
  kHandle,
  // Yields the next record: the next element of an iterator, or what a stage of
  // tf.staged puts into its buffer.
  kSource,
  // Belongs to the training step, with all that depends on it.
  kStepOnly,
};

// Why a node is on the training step's side.
enum class StepReason {
  kNone,  // It is not.
  // Roles of the node itself, and of all that depends on it.
  kVariable,
  kPlaceholder,
  kTable,
  kControlFlow,
  kCollective,
  kSaver,
  kSummary,
  kTarget,
  kStagedByHand,
  kSideEffect,
  // Found by the partition.
  kSavedIterator,
  // The step reads the iterator as well, out of sight of the partition.
  kSharedIterator,
  kOncePerRecordOnBothSides,
  kMixedSources,
  kNothingToCarry,
  kAddedLater,
  // Nothing forbids to run it ahead, but nothing asks for it.
  kUnneeded,
  kNoSource,
};

struct RoleAndReason {
  NodeRole role = NodeRole::kPure;
  // Unless the role is kStepOnly, kNone.
  StepReason reason = StepReason::kNone;
};

// Whether `node` is NodeRole::kSource.
bool IsSourceOp(const Node& node);

// Whether `node` gives an iterator its dataset, so that it begins anew.
bool IsIteratorInitializer(const Node& node);

// Whether `node` makes a string of an iterator's handle.
bool IsIteratorToStringHandle(const Node& node);

// Whether `node` makes an iterator's handle of a string.
bool IsIteratorFromStringHandle(const Node& node);

// Whether `node`, which is given an iterator's handle, may take records from it
// though it is no source.
bool MayReadIterator(const Node& node);

// What sources of one iterator have in common: its handle. A source without an
// iterator is its own.
const Node* IteratorOf(const Node& source);

// Tells whether a node counts. The others are as if they were not there. All
// count where there is no filter.
using NodeFilter = std::function<bool(const Node&)>;

// Tells the roles of a graph's nodes. Not thread-safe.
class NodeRoles {
 public:
  // `graph` has to outlive this object.
  explicit NodeRoles(const Graph& graph, const NodeFilter& counts = nullptr);

  RoleAndReason Find(const Node& node);

 private:
  bool IsWrittenTable(const Node& handle) const;
  // Whether a stateful op that calls functions calls such only as could be
  // staged if they stood in the graph.
  bool CallsStageableFunctionsOnly(const NodeDef& def);
  bool IsStageableFunction(const std::string& name);
  bool IsStageableInFunction(const NodeDef& def);

  const Graph& graph_;
  const NodeFilter counts_;
  const FunctionLibraryDefinition& functions_;
  // By name of a function that has been looked at. While it is being looked at,
  // false, so that a recursive one is not stageable.
  absl::flat_hash_map<std::string, bool> stageable_functions_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_NODE_ROLES_H_
