// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_UNION_FIND_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_UNION_FIND_H_

#include <numeric>
#include <vector>

namespace tensorflow {
namespace staging {

// Divides the numbers from 0 to size - 1 into disjoint groups (union-find).
class UnionFind {
 public:
  explicit UnionFind(int size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

  void JoinAll(const std::vector<int>& members) {
    for (int member : members) Join(members.front(), member);
  }

 private:
  std::vector<int> parent_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_UNION_FIND_H_
