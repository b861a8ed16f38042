// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/run_outcomes.h"

#include <gtest/gtest.h>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

PrefetchRunnerOptions Options() {
  PrefetchRunnerOptions options;
  options.add_closed_exceptions(error::OUT_OF_RANGE);
  options.add_closed_exceptions(error::ABORTED);
  options.add_ignored_exceptions(error::DATA_LOSS);
  options.add_ignored_exceptions(error::ABORTED);
  options.add_ignored_exceptions(error::UNAVAILABLE);
  return options;
}

TEST(RunOutcomesTest, TheCodeDeterminesTheOutcome) {
  const RunOutcomes outcomes(Options());
  EXPECT_EQ(outcomes.Of(errors::OutOfRange("end")), RunOutcome::kEndOfData);
  EXPECT_EQ(outcomes.Of(errors::DataLoss("one")), RunOutcome::kIgnored);
  EXPECT_EQ(outcomes.Of(errors::InvalidArgument("bad")), RunOutcome::kFailed);
  EXPECT_EQ(outcomes.Of(errors::Cancelled("stop")), RunOutcome::kFailed);
}

TEST(RunOutcomesTest, ClosedTakesPrecedenceOverIgnored) {
  EXPECT_EQ(RunOutcomes(Options()).Of(errors::Aborted("both")),
            RunOutcome::kEndOfData);
}

TEST(RunOutcomesTest, UnavailableIsRecognisedAfterItsReplacement) {
  const RunOutcomes outcomes(Options());
  EXPECT_EQ(outcomes.Of(errors::Internal(
                "Op of type X originally returned UnavailableError, and was "
                "replaced by InternalError to avoid invoking TF network error "
                "handling logic.")),
            RunOutcome::kIgnored);
  EXPECT_EQ(outcomes.Of(errors::Internal("another")), RunOutcome::kFailed);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
