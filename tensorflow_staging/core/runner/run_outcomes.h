// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
#define TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_

#include <set>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {

// What the end of a staged run means for its stage.
enum class RunOutcome {
  kRecord,     // It put a record.
  kEndOfData,  // It failed with one of closed_exceptions.
  kIgnored,    // It failed with one of ignored_exceptions.
  kFailed,  // It failed otherwise: its error is the cause that ends the stage.
};

// Tells the outcomes of the runs of one stage apart. Thread-safe.
class RunOutcomes {
 public:
  explicit RunOutcomes(const PrefetchRunnerOptions& options);

  // An error that is both closed and ignored is the end of the data.
  //
  // UNAVAILABLE of an op in the region counts as such, although the executor
  // reports it as INTERNAL.
  RunOutcome Of(const Status& status) const;

 private:
  const std::set<int> closed_codes_;
  const std::set<int> ignored_codes_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNNER_RUN_OUTCOMES_H_
