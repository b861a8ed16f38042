// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_ROLES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_ROLES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"
#include "tensorflow_staging/core/graph/facts/resources.h"
#include "tensorflow_staging/core/graph/facts/stale_reads.h"

namespace tensorflow {
namespace staging {

// The side on which a node may run, judged by the node alone. StagePartition
// also takes the node's dependencies into account.
enum class NodeRole {
  // Depends only on its inputs. May run on either side, any number of times.
  kPure,
  // Must run once for each record: draws random numbers, prints, checks, or
  // calls Python. May run ahead, but only on one side.
  kOncePerRecord,
  // Yields the handle of a resource that lives in the session and that a step
  // does not change: an iterator, or a table that only its initialiser fills.
  // Or of a variable of which both sides may read a value (StaleReads).
  // Both sides use the same node, because the node's name may identify the
  // resource.
  kHandle,
  // A source: yields the next element of an iterator, or takes the next record
  // of a manual stage.
  kSource,
  // Belongs to the training step, with all nodes that depend on it.
  kStepOnly,
};

// Why a node is in the step and does not run ahead. ReasonText explains each
// reason to the user.
enum class StepReason {
  kNone,  // The node is not in the step.
  // The next reasons follow from the role of the node, or of a node that it
  // depends on.
  kVariable,
  kPlaceholder,
  kTable,
  // Control flow of version 1 that cannot run ahead as a whole.
  kControlFlow,
  kCollective,
  kSaver,
  kSummary,
  kTarget,
  kManualStage,
  kSideEffect,
  // Only in a tf.function, whose FlatStep gives them.
  kPython,
  kSeededDraw,
  // The partition finds the next reasons.
  // A source that is read in a branch or a loop.
  kConditionalSource,
  // The step may also read the iterator through a node that is not a source.
  kSharedIterator,
  // The iterator's dataset uses a variable or table that the step may change.
  kChangingData,
  kOncePerRecordOnBothSides,
  kMixedSources,
  kNothingToCarry,
  // The region would have no lookup, in a partition for lookups.
  kNoLookup,
  kAddedLater,
  // The node could run ahead, but no node of the step needs it.
  kUnneeded,
  kNoSource,
};

struct RoleAndReason {
  NodeRole role = NodeRole::kPure;
  // kNone unless the role is kStepOnly.
  StepReason reason = StepReason::kNone;
};

// The roles of nodes that whoever made a graph knows better than their ops show.
using GivenRoles = absl::flat_hash_map<const Node*, RoleAndReason>;

// Returns whether the role of `node` is kSource.
bool IsSourceOp(const Node& node);

// Returns whether `node` computes or writes a summary.
bool IsSummary(const Node& node);

// Returns whether `node` creates a tensor array, which its users find by the
// handle that `node` yields.
bool IsTensorArray(const Node& node);

// Returns whether output `output` of `node` is the flow of a tensor array: a
// number without a meaning, which only orders what is done with the array.
bool IsTensorArrayFlow(const Node& node, int output);

// Returns whether `node` yields the handle of an iterator.
bool IsIteratorHandle(const Node& node);

// Returns whether `node` initialises an iterator with a dataset. It may do so
// again, with another.
bool IsIteratorInitializer(const Node& node);

// Returns whether `node` converts an iterator's handle to a string.
bool IsIteratorToStringHandle(const Node& node);

// Returns whether `node` converts a string to an iterator's handle.
bool IsIteratorFromStringHandle(const Node& node);

// Returns whether `node`, a user of an iterator's handle, may read elements of
// the iterator although it is not a source. Identities do not; their users may.
bool MayReadIterator(const Node& node);

// Finds the roles of a graph's nodes. Not thread-safe.
class NodeRoles {
 public:
  // `graph` and `stale`, which may be null, must outlive this object. Lookups
  // of `stale` may run ahead.
  explicit NodeRoles(const Graph& graph, const NodeFilter& counts = {},
                     const StaleReads* stale = nullptr);

  RoleAndReason Find(const Node& node);

  // Returns whether `node`, which can run ahead, may compute its outputs again
  // in the step, from the same inputs: the outputs are the same, and nobody
  // notices that it ran twice. A lookup in a variable is repeatable, too, for a
  // run that feeds the keys. A random number, a message or a call of a Python
  // function is not repeatable.
  bool IsRepeatable(const Node& node);

 private:
  bool IsConstantTable(const Node& handle);
  // Returns the names of the functions that a function call, a conditional or a
  // loop calls; nothing for other ops.
  std::vector<std::string> FunctionsOfCall(const NodeDef& def) const;
  // Whether functions have only nodes that `accepts` accepts, by name. False
  // while a function is being examined, so that no recursive one passes.
  struct Examined {
    bool (NodeRoles::* const accepts)(const NodeDef&);
    absl::flat_hash_map<std::string, bool> passes;
  };
  // Returns whether a stateful op calls functions, and all of them pass.
  bool CallsOnly(Examined* functions, const NodeDef& def);
  bool Passes(Examined* functions, const std::string& name);
  // Returns whether `def` could run ahead if it were in the graph.
  bool IsStageable(const NodeDef& def);
  // Returns whether `def`, a node that can run ahead, is repeatable.
  bool IsRepeatableNode(const NodeDef& def);

  const Graph& graph_;
  const NodeFilter counts_;
  const StaleReads* const stale_;
  const FunctionLibraryDefinition& functions_;
  // Null until the first table.
  std::unique_ptr<Resources> resources_;
  ResourceEffects effects_;
  Examined stageable_{&NodeRoles::IsStageable, {}};
  Examined repeatable_{&NodeRoles::IsRepeatableNode, {}};
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_NODE_ROLES_H_
