// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// What a staged run means for its stage, and what its producer does then.
enum class RunOutcome {
  kRecord,     // It put a record. Counts it, continues.
  kStale,      // It failed only because something else gets what it has read.
               // Repeats it, whatever its error.
  kIgnored,    // It failed with one of ignored_exceptions. Counts and logs it,
               // continues.
  kEndOfData,  // It failed with one of closed_exceptions. Closes the buffer,
               // once all fetch_ops have reached the end of their data.
  kFailed,     // It failed otherwise, or put no record. Closes the buffer with
               // the error. The first such error is the cause that ends the
               // stage.
};

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
