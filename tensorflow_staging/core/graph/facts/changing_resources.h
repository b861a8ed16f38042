// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CHANGING_RESOURCES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CHANGING_RESOURCES_H_

#include <map>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {

// Finds the nodes that may change a resource while a program trains.
//
// Every node that writes a resource may change it, except the following, which
// give it the value that it begins with:
//   * the initialiser of a table;
//   * a node that assigns what a checkpoint holds. A program that restores a
//     checkpoint during training is not recognised;
//   * the initialiser of a variable. A graph does not say which assignment that
//     is. It is taken to be the only one, apart from restores, if nothing but
//     groups (NoOp) wait for it, nothing uses its result, and the value depends
//     on no record, no placeholder, no queue, and no changing variable.
// A program that runs the initialiser again is not recognised.
//
// Not thread-safe.
class ChangingResources {
 public:
  // Both must outlive this object. `counts` is as for `resources`.
  ChangingResources(const Graph& graph, const Resources& resources,
                    const NodeFilter& counts);

  // Returns the nodes that may change a resource, given its owner.
  const std::vector<const Node*>& ChangersOf(const Node& owner);

  // Returns the node that gives a variable the value that it begins with, given
  // the variable's owner. Null if no node, or more than one, may be that node.
  const Node* InitializerOf(const Node& owner);

  // Returns the nodes that use the value of a resource or change it, given its
  // owner.
  std::vector<const Node*> UsersOf(const Node& owner);

 private:
  // Where an assigned value comes from.
  enum class Origin { kCheckpoint, kBeforeTraining, kUnknown };

  Origin OriginOfValue(const Node& assign, const Node& owner);
  bool IsRestore(const Node& assign, const Node& owner);
  bool IsInitializer(const Node& assign, const Node& owner);
  bool MayPrecedeTraining(const Node& node, const Node& owner);

  const Resources& resources_;
  const NodeFilter counts_;
  ResourceEffects effects_;
  NodeRoles roles_;
  std::map<const Node*, std::vector<const Node*>> changers_;  // By owner.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_CHANGING_RESOURCES_H_
