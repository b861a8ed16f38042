// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/producers/run_outcome.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// Returns the outcome of a run of a stage with `options` that failed with
// `error`. An error that is in both closed_exceptions and ignored_exceptions is
// the end of the data.
//
// If an op of the region failed with UNAVAILABLE, the error counts as
// UNAVAILABLE, although the executor reports it as INTERNAL. As the cause it
// stays INTERNAL, as it would be in a step.
RunOutcome OutcomeOf(const PrefetchRunnerOptions& options, const Status& error);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
