// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/run_outcomes.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/stale_run_error.h"

namespace tensorflow {
namespace staging {
namespace {

// Returns the code with which an op of the region failed. The executor replaces
// UNAVAILABLE with INTERNAL, so that it is not mistaken for a lost worker. Only
// this text shows the original code.
int RaisedCode(const Status& status) {
  const bool replaced =
      errors::IsInternal(status) &&
      absl::StrContains(status.message(),
                        "originally returned UnavailableError, and was "
                        "replaced by InternalError");
  return replaced ? error::UNAVAILABLE : status.raw_code();
}

}  // namespace

RunOutcome OutcomeOf(const PrefetchRunnerOptions& options,
                     const Status& error) {
  if (IsStaleRunError(error)) return RunOutcome::kStale;
  const int code = RaisedCode(error);
  if (absl::c_linear_search(options.closed_exceptions(), code)) {
    return RunOutcome::kEndOfData;
  }
  if (absl::c_linear_search(options.ignored_exceptions(), code)) {
    return RunOutcome::kIgnored;
  }
  return RunOutcome::kFailed;
}

}  // namespace staging
}  // namespace tensorflow
