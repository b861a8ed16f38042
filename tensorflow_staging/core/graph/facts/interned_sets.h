// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_INTERNED_SETS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_INTERNED_SETS_H_

#include <map>
#include <utility>
#include <vector>

namespace tensorflow {
namespace staging {

// Stores each distinct set of sources once and gives it an id. A node refers by
// this id to the set of sources that it depends on, and the union of two sets
// is computed only once. Graphs have few distinct sets, so an edge costs at
// most a lookup.
class InternedSets {
 public:
  using Id = int;
  // The empty set.
  static constexpr Id kEmpty = 0;

  InternedSets() { Intern({}); }
  InternedSets(const InternedSets&) = delete;
  InternedSets& operator=(const InternedSets&) = delete;

  // Returns the set that contains only `source`, a number that the caller
  // chooses.
  Id Single(int source) { return Intern({source}); }

  Id Union(Id a, Id b);

  // Returns the members in ascending order. The reference stays valid.
  const std::vector<int>& Members(Id id) const { return *members_[id]; }

 private:
  Id Intern(std::vector<int> members);

  std::map<std::vector<int>, Id> ids_;
  // The keys of ids_, by id. A map does not move its keys.
  std::vector<const std::vector<int>*> members_;
  std::map<std::pair<Id, Id>, Id> unions_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_INTERNED_SETS_H_
