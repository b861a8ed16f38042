// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_INTERNED_SETS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_INTERNED_SETS_H_

#include <map>
#include <utility>
#include <vector>

namespace tensorflow {
namespace staging {

// Sets of sources, kept once each: a node refers to the set of sources that it
// depends on by a number, and the union of two sets is computed once. Graphs
// have few different sets, so that this costs a lookup for each edge at most.
class InternedSets {
 public:
  using Id = int;
  // The set without members.
  static constexpr Id kEmpty = 0;

  InternedSets() { Intern({}); }
  InternedSets(const InternedSets&) = delete;
  InternedSets& operator=(const InternedSets&) = delete;

  // The set of one source, which is told by a number of the caller's.
  Id Single(int source) { return Intern({source}); }

  Id Union(Id a, Id b);

  // In ascending order.
  const std::vector<int>& Members(Id id) const { return *members_[id]; }

 private:
  Id Intern(std::vector<int> members);

  std::map<std::vector<int>, Id> ids_;
  // By id; owned by ids_, whose keys stay where they are.
  std::vector<const std::vector<int>*> members_;
  std::map<std::pair<Id, Id>, Id> unions_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PARTITION_INTERNED_SETS_H_
