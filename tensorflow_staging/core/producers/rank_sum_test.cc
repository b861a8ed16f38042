// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/rank_sum.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tensorflow {
namespace staging {
namespace {

TEST(RankSumTest, NothingToCompare) {
  EXPECT_EQ(RankSumScore({}, {1, 2}), 0);
  EXPECT_EQ(RankSumScore({1, 2}, {}), 0);
}

TEST(RankSumTest, EqualValuesDoNotDiffer) {
  EXPECT_EQ(RankSumScore({1, 1, 1}, {1, 1, 1, 1}), 0);
  EXPECT_EQ(RankSumScore({1, 2, 3}, {3, 2, 1}), 0);
}

// All 49 pairs, where 24.5 are expected with a standard deviation of
// sqrt(7 * 7 * 15 / 12) = 7.826.
TEST(RankSumTest, AllValuesAreLarger) {
  EXPECT_NEAR(RankSumScore({1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14}),
              3.1305, 1e-4);
  EXPECT_NEAR(RankSumScore({8, 9, 10, 11, 12, 13, 14}, {1, 2, 3, 4, 5, 6, 7}),
              -3.1305, 1e-4);
}

TEST(RankSumTest, HowFarOutAValueIsDoesNotMatter) {
  EXPECT_EQ(RankSumScore({1, 2, 9}, {3, 4, 5}),
            RankSumScore({1, 2, 1e9}, {3, 4, 5}));
}

TEST(RankSumTest, ChanceSeldomGivesALargeScore) {
  std::minstd_rand random(7919);
  std::normal_distribution<double> value(1, 0.05);
  int large = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> before, after;
    for (int k = 0; k < 14; ++k) {
      before.push_back(value(random));
      after.push_back(value(random));
    }
    large += RankSumScore(before, after) > 2.8;
  }
  EXPECT_GE(large, 2);
  EXPECT_LE(large, 20);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
