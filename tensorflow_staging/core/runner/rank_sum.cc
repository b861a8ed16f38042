// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/rank_sum.h"

#include <cmath>
#include <vector>

namespace tensorflow {
namespace staging {

double RankSumScore(const std::vector<double>& before,
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
