// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runner/run_outcomes.h"

#include "absl/strings/match.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow {
namespace staging {
namespace {

std::set<int> Codes(const protobuf::RepeatedField<int>& codes) {
  return std::set<int>(codes.begin(), codes.end());
}

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

RunOutcomes::RunOutcomes(const PrefetchRunnerOptions& options)
    : closed_codes_(Codes(options.closed_exceptions())),
      ignored_codes_(Codes(options.ignored_exceptions())) {}

RunOutcome RunOutcomes::Of(const Status& error) const {
  const int code = RaisedCode(error);
  if (closed_codes_.count(code) > 0) return RunOutcome::kEndOfData;
  if (ignored_codes_.count(code) > 0) return RunOutcome::kIgnored;
  return RunOutcome::kFailed;
}

}  // namespace staging
}  // namespace tensorflow
