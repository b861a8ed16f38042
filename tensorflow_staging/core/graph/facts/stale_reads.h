// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_STALE_READS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_STALE_READS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/resource_effects.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {

// The variables of a graph in which lookups may run ahead of the step although
// the step updates them, so that a lookup may miss the last updates.
//
// If tf.staging.allow_stale has marked variables, these are they. Otherwise
// they are the embedding variables: those of which the graph looks up rows and
// reads nothing else, apart from saving and summaries. The slots of an
// optimizer, which are colocated with their variable, are none.
//
// What leads to a node that tf.async_embedding_mark_node has marked may read
// any variable: each op on its way that uses the value of one is a lookup.
class StaleReads {
 public:
  enum class Part {
    // The op of a variable.
    kVariable,
    // Yields the variable's whole value. Both sides may read it, each at its
    // own time.
    kRead,
    // Looks up rows of the variable, or uses it on the way to a marked node.
    kLookup,
    // Uses the variable in any other way, as an update does: in the step only.
    kOther,
  };

  struct Use {
    Part part;
    // The op that stands for the variable.
    const Node* variable;
  };

  // Nodes that `counts` rejects do not count. `graph` must outlive this object.
  // Takes time linear in the nodes and edges of `graph`.
  explicit StaleReads(const Graph& graph, const NodeFilter& counts = {});

  StaleReads(const StaleReads&) = delete;
  StaleReads& operator=(const StaleReads&) = delete;

  // Returns what `node` is to one of these variables, or null.
  const Use* Find(const Node& node) const;

  bool IsLookup(const Node& node) const {
    const Use* use = Find(node);
    return use != nullptr && use->part == Part::kLookup;
  }

  // The variables, one op for each, in the order of the graph. A marked
  // variable without a lookup is not among them.
  const std::vector<const Node*>& variables() const { return variables_; }

  // The marked variables in which the graph looks up nothing.
  const std::vector<const Node*>& without_lookups() const {
    return without_lookups_;
  }

 private:
  struct Uses {
    std::vector<const Node*> reads;
    std::vector<const Node*> lookups;
    std::vector<const Node*> others;
    // Whether nothing but lookups, saving and summaries uses what is read.
    bool only_lookups = true;
    // Whether a lookup leads to a marked node.
    bool lead_to_mark = false;
  };

  Uses FindUses(const Node& variable, const Resources& resources,
                const NodeFilter& counts);
  void AddUsersOfValue(const Node& value, const NodeFilter& counts, Uses* uses);
  void AddUserOfValue(const Edge& edge, const NodeFilter& counts, Uses* uses);
  void AddLookup(const Node& lookup, Uses* uses);
  // Makes other uses of the lookups that lead to no marked node.
  void KeepLookupsThatLeadToMark(Uses* uses) const;
  void Add(const Node& variable, const Resources& resources, const Uses& uses);

  // The nodes that tf.async_embedding_mark_node has marked, and those that lead
  // to them.
  absl::flat_hash_set<const Node*> lead_to_mark_;
  ResourceEffects effects_;
  absl::flat_hash_map<const Node*, Use> uses_;
  std::vector<const Node*> variables_;
  std::vector<const Node*> without_lookups_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_STALE_READS_H_
