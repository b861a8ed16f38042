// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCES_H_

#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/resource_key.h"

namespace tensorflow {
namespace staging {

// One use of a resource.
struct ResourceUse {
  // The input of a user whose functions name the resource themselves.
  static constexpr int kByName = -1;

  const Node* user = nullptr;
  // The input at which the user gets the handle, or a reference to a variable.
  int input = kByName;
};

// Finds out which nodes of a graph use the same resource.
//
// Several handle ops may share one resource by their shared_name. The first of
// them in the graph stands for the resource, as its *owner*. A resource whose
// handle comes from another op, such as a function call, is told from others by
// that op.
class Resources {
 public:
  // `graph` must outlive this object. Nodes that `counts` rejects do not count.
  // Takes time linear in the nodes and edges of `graph`.
  explicit Resources(const Graph& graph, const NodeFilter& counts = {});

  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  // Returns the owner of the resource of the handle op `handle`. Returns
  // `handle` itself if it yields no handle, or does not count.
  const Node* OwnerOf(const Node& handle) const;

  // Returns the owner of the resource that `user` gets at `input`, or null if
  // that input is neither a handle nor a reference.
  const Node* OwnerOfInput(const Node& user, int input) const;

  // Returns the handle op that yields what `user` gets at `input`: the owner,
  // or an op that shares the owner's resource. Null as for OwnerOfInput.
  static const Node* HandleOfInput(const Node& user, int input);

  // Returns the owner of the iterator that `source` reads, the same node for
  // all sources of one iterator. Returns `source` itself if it reads none.
  const Node* IteratorOf(const Node& source) const;

  // Returns the uses of a resource, given its owner: those of all handle ops
  // that share it, also where the handle has passed through ops such as
  // Identity. In the order of the graph.
  const std::vector<ResourceUse>& UsesOf(const Node& owner) const;

  // Returns the owners of the resources that the functions of `user` name.
  std::vector<const Node*> NamedBy(const Node& user) const;

  // Returns all handle ops that share a resource, given its owner.
  std::vector<const Node*> HandlesOf(const Node& owner) const;

 private:
  using HandlesByKey = std::map<ResourceKey, std::vector<const Node*>>;

  void ShareBetweenDevices(const HandlesByKey& handles);
  void AddUsesByInput(const Graph& graph, const NodeFilter& counts);
  void AddUsesByName(const Graph& graph, const NodeFilter& counts,
                     const HandlesByKey& handles);

  // The owners of the handle ops that are not owners themselves, and the
  // reverse.
  absl::flat_hash_map<const Node*, const Node*> owner_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> others_;
  absl::flat_hash_map<const Node*, std::vector<ResourceUse>> uses_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> named_by_;
};

// Whether a tensor only names something that lives elsewhere, so that a record
// cannot hold it: a handle, or a reference to a variable.
bool IsHandle(DataType type);

// Returns whether `node` yields at its outputs the handles or references that
// it gets, and does nothing else with them.
bool IsHandlePassThrough(const Node& node);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCES_H_
