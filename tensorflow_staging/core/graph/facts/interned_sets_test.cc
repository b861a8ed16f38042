// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/interned_sets.h"

#include <gtest/gtest.h>

#include <vector>

namespace tensorflow {
namespace staging {
namespace {

using Members = std::vector<int>;

TEST(InternedSetsTest, AUnionHasTheMembersOfBothInOrder) {
  InternedSets sets;
  const InternedSets::Id one_and_five =
      sets.Union(sets.Single(5), sets.Single(1));
  EXPECT_EQ(sets.Members(one_and_five), (Members{1, 5}));
  const InternedSets::Id five_and_three =
      sets.Union(sets.Single(5), sets.Single(3));
  EXPECT_EQ(sets.Members(sets.Union(one_and_five, five_and_three)),
            (Members{1, 3, 5}));
}

TEST(InternedSetsTest, EqualSetsHaveTheSameId) {
  InternedSets sets;
  EXPECT_EQ(sets.Single(2), sets.Single(2));
  EXPECT_NE(sets.Single(2), sets.Single(3));
  EXPECT_EQ(sets.Union(sets.Single(2), sets.Single(3)),
            sets.Union(sets.Single(3), sets.Single(2)));
  const InternedSets::Id both = sets.Union(sets.Single(2), sets.Single(3));
  EXPECT_EQ(sets.Union(both, sets.Single(3)), both);
  EXPECT_EQ(sets.Union(both, both), both);
}

TEST(InternedSetsTest, TheEmptySetAddsNothing) {
  InternedSets sets;
  const InternedSets::Id one = sets.Single(1);
  EXPECT_EQ(sets.Members(InternedSets::kEmpty), Members());
  EXPECT_EQ(sets.Union(one, InternedSets::kEmpty), one);
  EXPECT_EQ(sets.Union(InternedSets::kEmpty, one), one);
}

TEST(InternedSetsTest, ReferencesToMembersStayValid) {
  InternedSets sets;
  const Members& members = sets.Members(sets.Single(0));
  for (int i = 1; i < 1000; ++i) sets.Single(i);
  EXPECT_EQ(members, Members{0});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
