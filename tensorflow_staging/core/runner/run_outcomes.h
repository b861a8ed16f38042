// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_

#include <set>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// What the error of a staged run means for its stage.
enum class RunOutcome {
  kEndOfData,  // It failed with one of closed_exceptions.
  kIgnored,    // It failed with one of ignored_exceptions.
  kFailed,  // It failed otherwise: its error is the cause that ends the stage.
};

// Determines the outcomes of the staged runs of one stage. Thread-safe.
class RunOutcomes {
 public:
  explicit RunOutcomes(const PrefetchRunnerOptions& options);

  // Returns the outcome of a run that failed with `error`. An error that is in
  // both closed_exceptions and ignored_exceptions is the end of the data.
  //
  // If an op of the region failed with UNAVAILABLE, the error counts as
  // UNAVAILABLE, although the executor reports it as INTERNAL.
  RunOutcome Of(const Status& error) const;

 private:
  const std::set<int> closed_codes_;
  const std::set<int> ignored_codes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
