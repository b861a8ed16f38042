// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/interned_sets.h"

#include <algorithm>
#include <iterator>

namespace tensorflow {
namespace staging {

InternedSets::Id InternedSets::Union(Id a, Id b) {
  if (a == b || b == kEmpty) return a;
  if (a == kEmpty) return b;
  const auto [it, inserted] = unions_.try_emplace(std::minmax(a, b), kEmpty);
  if (inserted) {
    std::vector<int> both;
    std::set_union(Members(a).begin(), Members(a).end(), Members(b).begin(),
                   Members(b).end(), std::back_inserter(both));
    it->second = Intern(std::move(both));
  }
  return it->second;
}

InternedSets::Id InternedSets::Intern(std::vector<int> members) {
  const auto [it, inserted] =
      ids_.try_emplace(std::move(members), static_cast<Id>(members_.size()));
  if (inserted) members_.push_back(&it->first);
  return it->second;
}

}  // namespace staging
}  // namespace tensorflow
