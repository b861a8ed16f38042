// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/run_outcomes.h"

#include <gtest/gtest.h>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/stale_run_error.h"

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

RunOutcome Of(const Status& error) { return OutcomeOf(Options(), error); }

TEST(RunOutcomesTest, TheCodeDeterminesTheOutcome) {
  EXPECT_EQ(Of(errors::OutOfRange("end")), RunOutcome::kEndOfData);
  EXPECT_EQ(Of(errors::DataLoss("one")), RunOutcome::kIgnored);
  EXPECT_EQ(Of(errors::InvalidArgument("bad")), RunOutcome::kFailed);
  EXPECT_EQ(Of(errors::Cancelled("stop")), RunOutcome::kFailed);
}

TEST(RunOutcomesTest, ClosedTakesPrecedenceOverIgnored) {
  EXPECT_EQ(Of(errors::Aborted("both")), RunOutcome::kEndOfData);
}

TEST(RunOutcomesTest, UnavailableIsRecognisedAfterItsReplacement) {
  EXPECT_EQ(Of(errors::Internal(
                "Op of type X originally returned UnavailableError, and was "
                "replaced by InternalError to avoid invoking TF network error "
                "handling logic.")),
            RunOutcome::kIgnored);
  EXPECT_EQ(Of(errors::Internal("another")), RunOutcome::kFailed);
}

// The code is one that ends the stage, and gRPC has cut the message.
TEST(RunOutcomesTest, AWorkerSaysWhetherARunIsStale) {
  const Status error = StaleRunError("s");
  EXPECT_EQ(Of(error), RunOutcome::kStale);
  EXPECT_EQ(Of(errors::CreateWithUpdatedMessage(error, "[truncated]")),
            RunOutcome::kStale);
  EXPECT_EQ(Of(errors::Aborted(error.message())), RunOutcome::kEndOfData);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
