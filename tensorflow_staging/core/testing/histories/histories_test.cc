// SPDX-License-Identifier: Apache-2.0
//
// The engine under a scheduler that one seed determines: which thread goes on,
// and where a cancellation, an error, a stop or a timeout falls.
//
//   STAGING_SEEDS=N   runs N histories
//   STAGING_SEED=S    runs one, and prints what happens

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tensorflow_staging/core/testing/histories/history.h"

namespace tensorflow {
namespace staging {
namespace {

// Stages log each error.
const int quiet = setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*replace=*/0);

int64_t NumberIn(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

TEST(HistoriesTest, AreThoseOfTheProgramWithoutStages) {
  ASSERT_EQ(quiet, 0);
  const int64_t seed = NumberIn("STAGING_SEED", -1);
  if (seed >= 0) {
    EXPECT_EQ(RunHistory(seed, /*is_traced=*/true).failure, "");
    return;
  }
  const int64_t first = NumberIn("STAGING_FIRST_SEED", 0);
  const int64_t count = NumberIn("STAGING_SEEDS", 3000);
  int failed = 0;
  int64_t steps = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const HistoryOutcome outcome = RunHistory(i, /*is_traced=*/false);
    steps += outcome.scheduling_steps;
    EXPECT_EQ(outcome.failure, "") << "STAGING_SEED=" << i;
    if (!outcome.failure.empty() && ++failed == 20) break;
  }
  std::printf("%lld scheduling steps a history\n",
              static_cast<long long>(steps / count));
}

TEST(HistoriesTest, DependOnTheSeedAlone) {
  for (int64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(RunHistory(seed, false).fingerprint,
              RunHistory(seed, false).fingerprint)
        << seed;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
