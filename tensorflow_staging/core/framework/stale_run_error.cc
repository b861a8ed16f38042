// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/stale_run_error.h"

#include "absl/strings/cord.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr char kStaleRun[] = "tensorflow_staging/stale_run";

}  // namespace

Status StaleRunError(const std::string& stage) {
  Status status = errors::Aborted(
      "Stage '", stage,
      "' repeats a run, because something else gets what it has read.");
  status.SetPayload(kStaleRun, absl::Cord(stage));
  return status;
}

bool IsStaleRunError(const Status& status) {
  return status.GetPayload(kStaleRun).has_value();
}

}  // namespace staging
}  // namespace tensorflow
