// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_RANK_SUM_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_RANK_SUM_H_

#include <cmath>
#include <vector>

namespace tensorflow {
namespace staging {

// Returns by how many standard deviations the sum of the ranks of `after`,
// among all values, exceeds what chance would give: the statistic of the
// rank-sum test (H. B. Mann and D. R. Whitney, "On a test of whether one of two
// random variables is stochastically larger than the other", 1947). Above 2.8
// in one of 400 cases, if both come from the same distribution, whatever that
// is. So a few values that are far out, as those of a pause, decide nothing.
//
// Returns 0 if one of them is empty.
inline double RankSumScore(const std::vector<double>& before,
                           const std::vector<double>& after) {
  if (before.empty() || after.empty()) return 0;
  // Of all pairs, those whose later value is larger; a tie is half of one.
  double larger = 0;
  for (double a : after) {
    for (double b : before) larger += a > b ? 1 : a == b ? 0.5 : 0;
  }
  const double m = before.size();
  const double n = after.size();
  return (larger - m * n / 2) / std::sqrt(m * n * (m + n + 1) / 12);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_RANK_SUM_H_
